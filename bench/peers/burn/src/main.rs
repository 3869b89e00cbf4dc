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
use burn::tensor::activation::relu;
use common::CHAIN;
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

fn main() {
    let options = common::options();
    match options.work.as_str() {
        "small_add" => small_add(options.repeat),
        _ => cnn_epoch(&options),
    }
}
