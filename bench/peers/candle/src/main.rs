//! candle on the CPU, timed on the work of the benches; prints a JSON object a figure.

#[path = "../../common.rs"]
mod common;

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::{
    AdamW, Conv2dConfig, Optimizer, ParamsAdamW, VarBuilder, VarMap, conv2d, linear, loss,
};
use common::CHAIN;
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

fn main() -> Result<()> {
    let options = common::options();
    match options.work.as_str() {
        "small_add" => small_add(options.repeat),
        _ => cnn_epoch(&options),
    }
}
