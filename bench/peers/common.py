"""What the Python peers share: the command line, the data set, the clock, the JSON figures, and serving rows."""

import argparse
import gzip
import json
import os
import random
import statistics
import sys
import time

import rows

BATCH = 128
STEPS_PER_EPOCH = 60000 // BATCH
WARM_UP = 3
CHAIN = 1000
CHAINS_PER_ROUND = 20


def options(description, **flags):
    """Reads the command line; `flags` are further switches of one peer, name to help text."""
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", required=True, choices=["small_add", "cnn_epoch", "rows"])
    parser.add_argument("--threads", type=int, default=cores)
    parser.add_argument("--repeat", type=int, default=1, help="timed rounds; the median is printed")
    parser.add_argument("--steps", type=int, help="cnn_epoch: time this many steps and extrapolate")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the IDX files")
    for name, text in flags.items():
        parser.add_argument("--" + name, action="store_true", help=text)
    return parser.parse_args()


def figure(name, value, unit):
    print(json.dumps({"name": name, "value": round(value, 6), "unit": unit}), flush=True)


def read_idx(path):
    """The bytes of a gzipped IDX file, without its header."""
    with gzip.open(path) as file:
        data = file.read()
    return bytearray(data[4 + 4 * data[3] :])


def fashion_mnist(folder):
    """Training images and labels, as bytes."""
    return (read_idx(f"{folder}/train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))


def time_adds(name, rounds, thousand_adds):
    """Times `thousand_adds()` and prints the median time of one add."""
    thousand_adds()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(CHAINS_PER_ROUND):
            thousand_adds()
        times.append(time.perf_counter() - start)
    figure(name, statistics.median(times) / (CHAINS_PER_ROUND * CHAIN) * 1e9, "ns")


def time_cnn(args, step):
    """Trains by `step(indices) -> loss` on shuffled full batches; the time of a step includes reading the loss."""
    order = list(range(60000))
    count = args.steps or STEPS_PER_EPOCH
    times, epochs, losses = [], [], []
    for turn in range(args.repeat):
        random.Random(turn).shuffle(order)
        batches = [order[i * BATCH : (i + 1) * BATCH] for i in range(STEPS_PER_EPOCH)]
        if turn == 0:
            for batch in batches[:WARM_UP]:
                step(batch)
        for i in range(count):
            start = time.perf_counter()
            losses.append(step(batches[i % STEPS_PER_EPOCH]))
            times.append(time.perf_counter() - start)
        epochs.append(sum(times[-count:]))
    median = statistics.median(times)
    figure("cnn_epoch", STEPS_PER_EPOCH * median if args.steps else statistics.median(epochs), "s")
    figure("cnn_step", median * 1e3, "ms")
    figure("cnn_loss", statistics.mean(losses[-10:]), "nat")


# ── Serving rows: bench/cpu/serve.cpp has the protocol ──────────────────────────────────────────────────────────────────
class Served:
    """A row made: `calls` are ways to compute it, which return when their results are there."""

    def __init__(self, calls, arrays=lambda results: results):
        self.calls, self.arrays = calls, arrays

    def check(self, count):
        """Warms every way up, keeps the fastest, and gives the outputs of the first one's call number `count`."""
        results = [self.calls[0]() for _ in range(count)][-1]
        if len(self.calls) > 1:
            for call in self.calls:
                call()
            self.calls = [min(self.calls, key=lambda call: timed(call, 2))]
        return [rows.summary(array) for array in self.arrays(results)]

    def run(self, samples, count):
        call = self.calls[0]
        return statistics.median(timed(call, count) for _ in range(samples))


def timed(call, count):
    """Seconds of a call."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def serve(make):
    """Answers requests; make(row) gives a Served, or None where the row is not for this peer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    served = None
    for line in sys.stdin:
        verb, *words = line.split()
        try:
            if verb in ("make", "first"):
                served = None  # its memory goes first
                start = time.perf_counter()
                served = make({"op": words[0], "dtype": "f32", "shape": [int(word) for word in words[1:]], "ring": 1})
                made = time.perf_counter() - start
                if served is None:
                    answer = {"absent": True}
                elif verb == "make":
                    answer = {"outputs": served.check(rows.check_calls(words[0]))}
                else:
                    served.calls[0]()
                    answer = {"making": made}
            elif verb == "run":
                answer = {"seconds": served.run(*map(int, words))}
            else:
                served, answer = None, {"dropped": True}
        except Exception as error:  # whatever a library throws
            served, answer = None, {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
