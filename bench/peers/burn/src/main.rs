//! burn's flex backend (CPU), timed on the work of the benches; prints a JSON object a figure.

#[path = "../../common.rs"]
mod common;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn::tensor::activation::{gelu_approximate, log_softmax, relu, softmax};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use common::{CHAIN, Call};
use std::hint::black_box;

fn small_add(rounds: usize) {
    let device = Device::flex();
    let a = Tensor::<1>::random([16], Distribution::Default, &device);
    let b = Tensor::<1>::random([16], Distribution::Default, &device);
    common::time_adds("small_add", rounds, || {
        for _ in 0..CHAIN {
            black_box(a.clone() + b.clone());
        }
    });
    common::time_adds("small_add_chain", rounds, || {
        let mut y = a.clone();
        for _ in 0..CHAIN {
            y = y + b.clone();
        }
        black_box(y);
    });
}

#[derive(Module, Debug)]
struct Net {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    linear1: Linear,
    linear2: Linear,
}

impl Net {
    fn new(device: &Device) -> Self {
        let conv = |channels| {
            Conv2dConfig::new(channels, [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device)
        };
        Net {
            conv1: conv([1, 16]),
            conv2: conv([16, 32]),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            linear1: LinearConfig::new(1568, 128).init(device),
            linear2: LinearConfig::new(128, 10).init(device),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.conv1.forward(x)));
        let x = self.pool.forward(relu(self.conv2.forward(x)));
        self.linear2.forward(relu(self.linear1.forward(x.flatten(1, 3))))
    }
}

fn cnn_epoch(options: &common::Options) {
    let device = Device::flex().autodiff();
    device.seed(0);
    let (images, labels) = common::fashion_mnist(&options.data);
    let count = labels.len();
    let labels: Vec<i64> = labels.into_iter().map(i64::from).collect();
    let x = Tensor::<4>::from_data(TensorData::new(images, [count, 1, 28, 28]), &device);
    let y = Tensor::<1, Int>::from_data(TensorData::new(labels, [count]), &device);

    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    let mut adam = AdamConfig::new().with_beta_1(0.9).with_beta_2(0.999).with_epsilon(1e-8).init();
    let mut net = Some(Net::new(&device));
    common::time_cnn(options, |batch| {
        let model = net.take().unwrap();
        let batch: Vec<i64> = batch.iter().map(|&i| i as i64).collect();
        let size = batch.len();
        let index = Tensor::<1, Int>::from_data(TensorData::new(batch, [size]), &device);
        let logits = model.forward(x.clone().select(0, index.clone()));
        let loss = cross_entropy.forward(logits, y.clone().select(0, index));
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        net = Some(adam.step(1e-3, model, grads));
        loss.into_scalar::<f32>() as f64
    });
}

// ── Rows ─────────────────────────────────────────────────────────────────────────────────────────
fn input<const D: usize>(number: u32, shape: [usize; D], device: &Device) -> Tensor<D> {
    let data = TensorData::new(common::values(16 * number, &shape), shape);
    Tensor::from_data(data, device)
}

/// A row of one result; burn computes it while it is called.
fn call<const D: usize>(compute: impl Fn() -> Tensor<D> + 'static) -> Option<Call> {
    Some(Box::new(move |wanted| {
        let y = black_box(compute());
        if wanted { y.into_data().iter::<f32>().collect() } else { vec![] }
    }))
}

fn link(x: Tensor<2>) -> Tensor<2> {
    (x * 0.5 + 0.25).sin().abs()
}

fn matrix_row(op: &str, shape: [usize; 2], device: &Device) -> Option<Call> {
    let [x, b, c] = [0, 1, 2].map(|number| input(number, shape, device));
    match op {
        "chain8" => call(move || link(link(x.clone()))),
        "abc_exp" => call(move || (x.clone() * b.clone() + c.clone()).exp()),
        "add" => call(move || x.clone() + b.clone()),
        "softmax" => call(move || softmax(x.clone(), 1)),
        "log_softmax" => call(move || log_softmax(x.clone(), 1)),
        "sum0" => call(move || x.clone().sum_dim(0)),
        "sum1" => call(move || x.clone().sum_dim(1)),
        "sum_all" => call(move || x.clone().sum()),
        "max1" => call(move || x.clone().max_dim(1)),
        "argmax1" => call(move || x.clone().argmax(1).float()),
        _ => None,
    }
}

fn product_row(op: &str, shape: &[usize], device: &Device) -> Option<Call> {
    if let [batch, m, k, n] = *shape {
        let a = input(0, [batch, m, k], device);
        let b = input(1, [batch, k, n], device);
        return call(move || a.clone().matmul(b.clone()));
    }
    let (a, b) = (input(0, [shape[0], shape[1]], device), input(1, [shape[1], shape[2]], device));
    let bias = input(2, [1, shape[2]], device);
    match op {
        "matmul_nn" => call(move || a.clone().matmul(b.clone())),
        "matmul_nn_gelu" => call(move || gelu_approximate(a.clone().matmul(b.clone()) + bias.clone())),
        _ => None,
    }
}

fn conv_row(s: &[usize], device: &Device) -> Option<Call> {
    let x = input(0, [s[0], s[1], s[2], s[3]], device);
    let w = input(1, [s[4], s[1] / s[7], s[5], s[5]], device);
    let options = ConvOptions::new([s[6]; 2], [s[5] / 2; 2], [1, 1], s[7]);
    call(move || conv2d(x.clone(), w.clone(), None, options.clone()))
}

fn small_row(op: &str, size: usize, device: &Device) -> Option<Call> {
    let recorded = op == "small_add_recorded";
    let device = if recorded { device.clone().autodiff() } else { device.clone() };
    let (a, b) = (input(0, [size], &device), input(1, [size], &device));
    let a = if recorded { a.require_grad() } else { a };
    let links = if op == "small_add_chain8" { 8 } else { 1 };
    call(move || {
        let mut y = a.clone();
        for _ in 0..CHAIN {
            y = a.clone();
            for _ in 0..links {
                y = y + b.clone();
            }
        }
        y
    })
}

fn row(op: &str, shape: &[usize]) -> Option<Call> {
    let device = Device::flex();
    match op {
        _ if op.starts_with("matmul") => product_row(op, shape, &device),
        _ if op.starts_with("small_add") => small_row(op, shape[0], &device),
        "conv" => conv_row(shape, &device),
        "add" if shape.len() == 1 => matrix_row(op, [1, shape[0]], &device),
        _ if shape.len() == 2 => matrix_row(op, [shape[0], shape[1]], &device),
        _ => None,
    }
}

fn main() {
    let options = common::options();
    match options.work.as_str() {
        "small_add" => small_add(options.repeat),
        "rows" => common::serve(row),
        _ => cnn_epoch(&options),
    }
}
