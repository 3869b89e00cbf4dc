//! candle on the CPU, timed on the work of the benches; prints a JSON object a figure.

#[path = "../../common.rs"]
mod common;

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::{
    AdamW, Conv2dConfig, Optimizer, ParamsAdamW, VarBuilder, VarMap, conv2d, linear, loss, ops,
};
use common::{CHAIN, Call};
use std::hint::black_box;

const DEVICE: Device = Device::Cpu;

fn small_add(rounds: usize) -> Result<()> {
    let a = Tensor::rand(0f32, 1f32, (16,), &DEVICE)?;
    let b = Tensor::rand(0f32, 1f32, (16,), &DEVICE)?;
    common::time_adds("small_add", rounds, || {
        for _ in 0..CHAIN {
            black_box((&a + &b).unwrap());
        }
    });
    common::time_adds("small_add_chain", rounds, || {
        let mut y = a.clone();
        for _ in 0..CHAIN {
            y = (y + &b).unwrap();
        }
        black_box(y);
    });
    Ok(())
}

fn cnn_epoch(options: &common::Options) -> Result<()> {
    let (images, labels) = common::fashion_mnist(&options.data);
    let x = Tensor::from_vec(images, (labels.len(), 1, 28, 28), &DEVICE)?;
    let y = Tensor::new(labels, &DEVICE)?.to_dtype(DType::U32)?;

    let vars = VarMap::new();
    let vb = VarBuilder::from_varmap(&vars, DType::F32, &DEVICE);
    let padded = Conv2dConfig { padding: 1, ..Default::default() };
    let conv1 = conv2d(1, 16, 3, padded, vb.pp("conv1"))?;
    let conv2 = conv2d(16, 32, 3, padded, vb.pp("conv2"))?;
    let linear1 = linear(1568, 128, vb.pp("linear1"))?;
    let linear2 = linear(128, 10, vb.pp("linear2"))?;
    // candle has no Adam of its own: without weight decay AdamW is the same.
    let params = ParamsAdamW { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0 };
    let mut adam = AdamW::new(vars.all_vars(), params)?;

    let mut step = |batch: &[u32]| -> Result<f64> {
        let index = Tensor::new(batch, &DEVICE)?;
        let h = x.index_select(&index, 0)?;
        let h = conv1.forward(&h)?.relu()?.max_pool2d(2)?;
        let h = conv2.forward(&h)?.relu()?.max_pool2d(2)?;
        let h = linear1.forward(&h.flatten_from(1)?)?.relu()?;
        let loss = loss::cross_entropy(&linear2.forward(&h)?, &y.index_select(&index, 0)?)?;
        adam.backward_step(&loss)?;
        Ok(loss.to_scalar::<f32>()? as f64)
    };
    common::time_cnn(options, |batch| step(batch).unwrap());
    Ok(())
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────
fn link(x: &Tensor) -> Result<Tensor> {
    x.affine(0.5, 0.25)?.sin()?.abs()
}

/// The shapes of a row's inputs; none: the row is not for candle.
fn input_shapes(op: &str, s: &[usize]) -> Option<Vec<Vec<usize>>> {
    Some(match op {
        "chain8" | "sum0" | "sum1" | "sum_all" | "max1" | "argmax1" | "softmax" | "log_softmax" => vec![s.to_vec()],
        "abc_exp" => vec![s.to_vec(); 3],
        "add" | "small_add" | "small_add_chain8" => vec![s.to_vec(); 2],
        "layer_norm" => vec![s.to_vec(), s[1..].to_vec(), s[1..].to_vec()],
        "rms_norm" => vec![s.to_vec(), s[1..].to_vec()],
        "matmul_nn" => vec![vec![s[0], s[1]], vec![s[1], s[2]]],
        "matmul_nn_gelu" => vec![vec![s[0], s[1]], vec![s[1], s[2]], vec![s[2]]],
        "matmul_batch" => vec![vec![s[0], s[1], s[2]], vec![s[0], s[2], s[3]]],
        "conv" => vec![s[..4].to_vec(), vec![s[4], s[1] / s[7], s[5], s[5]]],
        _ => return None,
    })
}

fn adds(a: &Tensor, b: &Tensor, links: usize) -> Result<Tensor> {
    let mut y = a.clone();
    for _ in 0..CHAIN {
        y = a.clone();
        for _ in 0..links {
            y = (y + b)?;
        }
    }
    Ok(y)
}

fn compute(op: &str, shape: &[usize], i: &[Tensor]) -> Result<Tensor> {
    match op {
        "chain8" => link(&link(&i[0])?),
        "abc_exp" => ((&i[0] * &i[1])? + &i[2])?.exp(),
        "add" => &i[0] + &i[1],
        "small_add" => adds(&i[0], &i[1], 1),
        "small_add_chain8" => adds(&i[0], &i[1], 8),
        "sum0" => i[0].sum(0),
        "sum1" => i[0].sum(1),
        "sum_all" => i[0].sum_all(),
        "max1" => i[0].max(1),
        "argmax1" => i[0].argmax(1),
        "softmax" => ops::softmax_last_dim(&i[0]),
        "log_softmax" => ops::log_softmax(&i[0], 1),
        "layer_norm" => ops::layer_norm(&i[0], &i[1], &i[2], 1e-5),
        "rms_norm" => ops::rms_norm(&i[0], &i[1], 1e-5),
        "matmul_nn_gelu" => i[0].matmul(&i[1])?.broadcast_add(&i[2])?.gelu(),
        "conv" => i[0].conv2d(&i[1], shape[5] / 2, shape[6], 1, shape[7]),
        _ => i[0].matmul(&i[1]),
    }
}

fn row(op: &str, shape: &[usize]) -> Option<Call> {
    let input = |(number, shape): (usize, Vec<usize>)| {
        Tensor::from_vec(common::values(16 * number as u32, &shape), shape, &DEVICE).unwrap()
    };
    let inputs: Vec<Tensor> = input_shapes(op, shape)?.into_iter().enumerate().map(input).collect();
    let (op, shape) = (op.to_string(), shape.to_vec());
    Some(Box::new(move |wanted| {
        let y = black_box(compute(&op, &shape, &inputs).unwrap());
        if !wanted {
            return vec![];
        }
        y.to_dtype(DType::F32).and_then(|y| y.flatten_all()).and_then(|y| y.to_vec1()).unwrap()
    }))
}

fn main() -> Result<()> {
    let options = common::options();
    match options.work.as_str() {
        "small_add" => small_add(options.repeat),
        "rows" => {
            common::serve(row);
            Ok(())
        }
        _ => cnn_epoch(&options),
    }
}
