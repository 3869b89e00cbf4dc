//! What the Rust peers share: the command line, the data set, the clock, the JSON figures, and serving rows.

use std::{io::BufRead, process::Command, time::Instant};

pub const CHAIN: usize = 1000;
const CHAINS_PER_ROUND: usize = 100;
const BATCH: usize = 128;
const IMAGES: usize = 60_000;
const STEPS_PER_EPOCH: usize = IMAGES / BATCH;
const WARM_UP: usize = 3;

const USAGE: &str = "--work small_add|cnn_epoch|rows [--threads N] [--repeat R] [--steps K] [--data FOLDER]
  --repeat  timed rounds (1); the median is printed
  --steps   cnn_epoch: time this many steps and extrapolate
  --data    folder of the IDX files (/usr/share/datasets/fashion-mnist)";

pub struct Options {
    pub work: String,
    pub repeat: usize,
    pub steps: Option<usize>,
    pub data: String,
}

fn usage(problem: &str) -> ! {
    eprintln!("{problem}\nusage: {USAGE}");
    std::process::exit(2)
}

/// Reads the command line and fixes the number of threads; call it before anything else.
pub fn options() -> Options {
    let mut o = Options {
        work: String::new(),
        repeat: 1,
        steps: None,
        data: "/usr/share/datasets/fashion-mnist".into(),
    };
    let mut threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().unwrap_or_else(|| usage(&format!("{name} needs a value")));
        let number = || match value.parse() {
            Ok(n) if n > 0 => n,
            _ => usage(&format!("{name} needs a positive number, not {value}")),
        };
        match name.as_str() {
            "--work" => o.work = value,
            "--threads" => threads = number(),
            "--repeat" => o.repeat = number(),
            "--steps" => o.steps = Some(number()),
            "--data" => o.data = value,
            _ => usage(&format!("unknown option {name}")),
        }
    }
    if !["small_add", "cnn_epoch", "rows"].contains(&o.work.as_str()) {
        usage("--work is missing or unknown");
    }
    // Both peers take their thread count from this variable. Safe: no other thread runs yet.
    unsafe { std::env::set_var("RAYON_NUM_THREADS", threads.to_string()) };
    o
}

pub fn figure(name: &str, value: f64, unit: &str) {
    println!("{{\"name\": \"{name}\", \"value\": {value:.6}, \"unit\": \"{unit}\"}}");
}

/// The bytes of a gzipped IDX file, without its header. The gzip program reads it, which spares a dependency.
fn read_idx(path: String) -> Vec<u8> {
    let gzip = Command::new("gzip").args(["-dc", &path]).output().expect("gzip must be installed");
    assert!(gzip.status.success(), "{path}: {}", String::from_utf8_lossy(&gzip.stderr));
    let mut data = gzip.stdout;
    data.split_off(4 + 4 * data[3] as usize)
}

/// The training images, scaled, and their labels.
pub fn fashion_mnist(folder: &str) -> (Vec<f32>, Vec<u8>) {
    let images = read_idx(format!("{folder}/train-images-idx3-ubyte.gz"));
    let labels = read_idx(format!("{folder}/train-labels-idx1-ubyte.gz"));
    let scale = |&x: &u8| (x as f32 / 255.0 - 0.2860) / 0.3530;
    (images.iter().map(scale).collect(), labels)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

fn shuffle(order: &mut [u32], state: &mut u64) {
    for i in (1..order.len()).rev() {
        // xorshift64
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        order.swap(i, (*state % (i as u64 + 1)) as usize);
    }
}

/// Times `thousand_adds` and prints the median time of one add.
pub fn time_adds(name: &str, rounds: usize, mut thousand_adds: impl FnMut()) {
    thousand_adds();
    let mut round = || {
        let start = Instant::now();
        (0..CHAINS_PER_ROUND).for_each(|_| thousand_adds());
        start.elapsed().as_secs_f64() / (CHAINS_PER_ROUND * CHAIN) as f64
    };
    let times: Vec<f64> = (0..rounds).map(|_| round()).collect();
    figure(name, median(&times) * 1e9, "ns");
}

/// Trains by `step(indices) -> loss` on shuffled full batches; the time of a step includes reading the loss.
pub fn time_cnn(options: &Options, mut step: impl FnMut(&[u32]) -> f64) {
    let mut order: Vec<u32> = (0..IMAGES as u32).collect();
    let mut random = 0x9E37_79B9_7F4A_7C15;
    let count = options.steps.unwrap_or(STEPS_PER_EPOCH);
    let (mut times, mut epochs, mut losses) = (vec![], vec![], vec![]);
    for turn in 0..options.repeat {
        shuffle(&mut order, &mut random);
        let batches: Vec<_> = order.chunks_exact(BATCH).collect();
        if turn == 0 {
            batches[..WARM_UP].iter().for_each(|batch| {
                step(batch);
            });
        }
        for batch in batches.iter().cycle().take(count) {
            let start = Instant::now();
            losses.push(step(batch));
            times.push(start.elapsed().as_secs_f64());
        }
        epochs.push(times[times.len() - count..].iter().sum());
    }
    let step_time = median(&times);
    let epoch = match options.steps {
        Some(_) => STEPS_PER_EPOCH as f64 * step_time,
        None => median(&epochs),
    };
    let last = &losses[losses.len().saturating_sub(10)..];
    figure("cnn_epoch", epoch, "s");
    figure("cnn_step", step_time * 1e3, "ms");
    figure("cnn_loss", last.iter().sum::<f64>() / last.len() as f64, "nat");
}

// ── Serving rows: bench/cpu/serve.cpp has the protocol ───────────────────────────────────────────

/// A row made: computes it, and returns its output where that is asked for.
pub type Call = Box<dyn FnMut(bool) -> Vec<f32>>;

fn mix(seed: u32, i: usize) -> u32 {
    let mut h = (i as u32).wrapping_mul(2654435761).wrapping_add(seed.wrapping_mul(2246822519).wrapping_add(1));
    h = (h ^ (h >> 16)).wrapping_mul(0x85ebca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2ae35);
    h ^ (h >> 16)
}

/// Number i is in [-1, 1), from `seed` and i alone; bench/common/inputs.cpp has the same.
pub fn values(seed: u32, shape: &[usize]) -> Vec<f32> {
    let one = |i| ((mix(seed, i) >> 8) as i32 - (1 << 23)) as f32 / (1 << 23) as f32;
    (0..shape.iter().product()).map(one).collect()
}

fn summary(data: &[f32]) -> String {
    let wide = || data.iter().map(|&x| x as f64);
    let sample = |i: usize| data[i * 2654435761 % data.len()].to_string();
    let samples: Vec<String> = (0..data.len().min(1000)).map(sample).collect();
    let (sum, squares): (f64, f64) = (wide().sum(), wide().map(|x| x * x).sum());
    let (count, samples) = (data.len(), samples.join(","));
    format!(r#"{{"outputs":[{{"count":{count},"sum":{sum},"squares":{squares},"samples":[{samples}]}}]}}"#)
}

fn timed(call: &mut Call, count: usize) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| {
        call(false);
    });
    start.elapsed().as_secs_f64() / count as f64
}

/// Answers requests; `make(op, shape)` gives a call, or none where the row is not for this peer.
pub fn serve(make: impl Fn(&str, &[usize]) -> Option<Call>) {
    let mut made: Option<Call> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("requests are text");
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = |from: usize| words[from..].iter().map(|w| w.parse().expect("sizes are numbers")).collect::<Vec<usize>>();
        let answer = match words[0] {
            "make" | "first" => {
                drop(made.take()); // its memory goes first
                let start = Instant::now();
                made = make(words[1], &numbers(2));
                let making = start.elapsed().as_secs_f64();
                match &mut made {
                    None => r#"{"absent":true}"#.into(),
                    Some(call) if words[0] == "make" => {
                        let output = summary(&call(true));
                        call(false);
                        output
                    }
                    Some(call) => {
                        call(false);
                        format!(r#"{{"making":{making}}}"#)
                    }
                }
            }
            "run" => {
                let (samples, count) = (numbers(1)[0], numbers(1)[1]);
                let call = made.as_mut().expect("a row is made before it is run");
                let times: Vec<f64> = (0..samples).map(|_| timed(call, count)).collect();
                format!(r#"{{"seconds":{}}}"#, median(&times))
            }
            _ => {
                made = None;
                r#"{"dropped":true}"#.into()
            }
        };
        println!("{answer}");
    }
}
