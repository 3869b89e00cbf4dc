"""Drives bench cuda: our program and its peers in turns, on the same inputs, with results compared.

Each row is an object on a line of its own, printed as soon as it is known:
  name, value, unit    microseconds of a call when 50 are started before one wait, the median of the rounds
  sync                 microseconds of a call that is waited for
  gbps, of_copy        bandwidth, and its share of what copying reached in the same run; tflops of products
  peers, peer, peer_value, ratio   every peer's value, the fastest, and ours to its
  first                seconds of the first call of a training step, compiling included
  bar, least, most     what ratio and value may be at most, of_copy at least
  off                  the largest deviation from the expected results, in units of the tolerance
  ok                   whether the results and all bars hold
Of gpt2_losses, the value is the largest relative distance of 50 steps' losses from torch's.
A row that fails has an `error` in place of a value.
"""

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

CALLS = 50
PATIENCE = 120  # seconds until an answer counts as lost
FIRST_BARS = {"first_mlp_cold": 0.6, "first_gpt_cold": 1.5, "first_gpt_warm": 0.8}
TOLERANCES = {"f32": 2e-5, "bf16": 2e-2}
LONG_SUMS = ("matmul", "sum", "small_adds", "layer_norm_grad", "rms_norm_grad")  # five times the tolerance
TRAINING_TOLERANCE = 1e-3
LOSSES_BAR = 1e-2  # relative, at every step


def options():
    parser = argparse.ArgumentParser(prog="./do bench cuda")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", default="", metavar="PREFIX,...", help="those whose names begin so, and copy")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no compiled peers")
    parser.add_argument("--seconds", type=float, default=470, help="after which no further row is begun")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiny", action="store_true", help="every axis a sixty-fourth")
    parser.add_argument("--first-peer", metavar="ROW", help=argparse.SUPPRESS)
    return parser.parse_args()


def note(*words):
    print("cuda:", *words, file=sys.stderr, flush=True)


# ── Ours ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
class Failure(Exception):
    pass


class Ours:
    """The program that serves rows; started anew after an error, since that can end a device's context."""

    def __init__(self, args):
        self.command = [args.program, "--serve", "--device", args.device] + ["--tiny"] * args.tiny
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, args=(self.process, self.lines), daemon=True).start()

    @staticmethod
    def read(process, lines):
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def ask(self, request):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=PATIENCE)
        except (queue.Empty, BrokenPipeError):
            line = None
        if line is None:
            status = self.process.poll()
            self.stop()
            raise Failure(f"no answer to '{request}'; the program " + ("hangs" if status is None else f"ended with {status}"))
        answer = json.loads(line)
        if "error" in answer:
            self.stop()
            raise Failure(answer["error"])
        return answer

    def run(self, name, mode, repeats):
        return self.ask(f"run {name} {mode} {repeats}")["value"]

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


# ── Comparing ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def summary(work, tensor):
    """As bench/cuda/inputs.cpp makes it."""
    flat = tensor.detach().reshape(-1)
    count = flat.numel()
    at = work.torch.arange(min(1000, count), device=flat.device) * 2654435761 % count
    wide = flat.double()
    return {"count": count, "sum": wide.sum().item(), "squares": (wide * wide).sum().item(), "samples": wide[at].tolist()}


def deviation(ours, theirs, tolerance):
    """The largest difference in units of the tolerance, elements relative to their size and the root of the mean square."""
    if ours["count"] != theirs["count"]:
        return float("inf")
    if None in (ours["sum"], ours["squares"], *ours["samples"]):
        return float("inf")  # something is not a number
    count = theirs["count"]
    size = (theirs["squares"] / count) ** 0.5 or 1e-30
    off = [abs(a - b) / (abs(b) + size) for a, b in zip(ours["samples"], theirs["samples"])]
    off.append(abs(ours["sum"] - theirs["sum"]) / (count * size))
    off.append(abs(ours["squares"] - theirs["squares"]) / (4 * count * size * size))
    return max(off) / tolerance


def tolerance_of(row):
    if row["check_calls"] > 1:
        return TRAINING_TOLERANCE
    return TOLERANCES[row["dtype"]] * (5 if row["op"].startswith(LONG_SUMS) else 1)


# ── Timing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def time_peer(work, row, call, device, repeats, each):
    """Microseconds of a call; waiting for `each`, or for all together."""
    held = [None] * row["ring"]
    work.wait(call(0), device)
    times = []
    begin = time.perf_counter()
    for i in range(repeats):
        held[i % row["ring"]] = call(i % row["ring"])
        if each:
            work.wait(held[i % row["ring"]], device)
            now = time.perf_counter()
            times.append(now - begin)
            begin = now
    work.wait(held[(repeats - 1) % row["ring"]], device)
    spent = statistics.median(times) if each else (time.perf_counter() - begin) / repeats
    return spent / row["per"] * 1e6


def warm_peers(work, row, expected, args):
    """Makes the peers, checks what they compute, and drops those that fail."""
    ready = {}
    for name, make in work.makers(row, args.device).items():
        if args.quick and name == "compile":
            continue
        try:
            made = make()
            for each, call in (made if isinstance(made, dict) else {name: made}).items():
                for _ in range(3):
                    result = call(0)
                work.wait(result, args.device)
                compared = row["check_calls"] == 1 and each != "clone"
                if not compared or not wrong_peer(work, row, each, result[0], expected):
                    ready[each] = call
        except Exception as error:  # whatever a library throws
            note(f"{row['name']}: {name} left out: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return ready


def wrong_peer(work, row, name, result, expected):
    tensor = result if isinstance(result, work.torch.Tensor) else work.torch.from_dlpack(result)
    off = deviation(summary(work, tensor), expected[0], 5 * tolerance_of(row))
    if off > 1:
        note(f"{row['name']}: {name} left out: its result is off by {off:.1f} tolerances")
    return off > 1


def rounds(ours, work, row, peers, args):
    """Medians of ours and of each peer, batch and sync, in turns."""
    time_of = {name: lambda mode, n, call=call: time_peer(work, row, call, args.device, n, mode == "sync") for name, call in peers.items()}
    time_of = {"ours": lambda mode, n: ours.run(row["name"], mode, n)} | time_of
    once = {name: max(1, time("sync", 2) * row["per"]) for name, time in time_of.items()}
    samples = {}
    for _ in range(2 if args.quick else 5):
        for mode, most in (("batch", CALLS), ("sync", 20)):
            for name, time in time_of.items():
                repeats = max(2, min(most, int(1e6 / once[name])))  # fewer where they would take more than a second
                time(mode, 2)  # the device turns to this process, which takes 200 us, before the clock starts
                samples.setdefault((name, mode), []).append(time(mode, repeats))
    return {key: statistics.median(values) for key, values in samples.items()}


# ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
def show(result, args):
    result = {key: round(value, 6 if abs(value) < 10 else 2) if isinstance(value, float) else value for key, value in result.items()}
    if args.json:
        print(json.dumps(result), flush=True)
        return
    if "error" in result:
        print(f"{result['name']:36} {result['error']}", flush=True)
        return
    text = f"{result['name']:36} {result['value']:12.2f} {result['unit']}"
    if "peer" in result:
        text += f"   {result['peer']} {result['peer_value']:.2f}, ratio {result['ratio']:.2f}"
    for key, words in (("of_copy", "of copy"), ("tflops", "TFLOP/s"), ("first", "first s"), ("ok", "ok")):
        text += f"   {words} {result[key]}" if key in result else ""
    print(text, flush=True)


def judge(result, row, off):
    """Adds the bars of a row and whether they hold; no `ok` where one lacks its figure and the others hold."""
    holds, known = ([off <= 1] if off is not None else []), True
    for key, bar, name in (("ratio", "bar", "bar"), ("of_copy", "of_copy", "least"), ("value", "most", "most")):
        if bar in row and key not in result:
            known = False
        elif bar in row:
            result[name] = row[bar]
            holds.append(result[key] >= row[bar] if name == "least" else result[key] <= row[bar])
    if off is not None:
        result["off"] = off if off != float("inf") else None
    if holds and (known or not all(holds)):
        result["ok"] = all(holds)


def against(result, theirs):
    if not theirs:
        return
    result["peers"] = {name: round(value, 2) for name, value in theirs.items()}
    result["peer"] = min(theirs, key=theirs.get)
    result["peer_value"] = theirs[result["peer"]]
    result["ratio"] = result["value"] / result["peer_value"]


def measure(ours, work, row, copy, args):
    """One row, and the bandwidth of copying where it is that row."""
    device = args.device
    expected = [summary(work, tensor) for tensor in work.expected(row, device)]
    work.torch.cuda.empty_cache()
    answer = ours.ask(f"check {row['name']}")
    off = max(deviation(o, e, tolerance_of(row)) for o, e in zip(answer["outputs"], expected, strict=True))
    peers = warm_peers(work, row, expected, args)
    medians = rounds(ours, work, row, peers, args)
    mine = medians[("ours", "batch")]
    result = {"name": row["name"], "value": mine, "unit": "us", "sync": medians[("ours", "sync")]}
    if row["bytes"]:
        fastest = min(v for (_, mode), v in medians.items() if mode == "batch") if row["op"] == "copy" else None
        copy = row["bytes"] / fastest if fastest else copy
        result["gbps"] = row["bytes"] / mine / 1e3
        if copy:
            result["of_copy"] = row["bytes"] / mine / copy
    if row["flops"]:
        result["tflops"] = row["flops"] / mine / 1e6
    if row["op"].endswith("_step"):
        result["first"] = answer["first"]
    if row["op"].startswith("small_adds"):
        result["record_ns"] = ours.run(row["name"], "record", 20)
    against(result, {name: value for (name, mode), value in medians.items() if mode == "batch" and name != "ours"})
    judge(result, row, off)
    show(result, args)
    return copy


def compare_losses(ours, work, row, args):
    """Of training steps one after another; not timed."""
    summaries = [summary(work, work.expected(row, args.device)[0])]
    work.torch.cuda.empty_cache()
    summaries += ours.ask(f"check {row['name']}")["outputs"]
    count = len(summaries[0]["samples"])
    place = {i * 2654435761 % count: i for i in range(count)}  # as summaries take their samples
    theirs, mine = ([one["samples"][place[i]] for i in range(count)] for one in summaries)
    far = max(abs(a - b) / b if a is not None else float("inf") for a, b in zip(mine, theirs))
    some = lambda curve: [None if one is None else round(one, 4) for one in curve[:: count // 5] + curve[-1:]]
    result = {"name": row["name"], "value": far, "unit": "relative", "losses": some(mine), "peers": {"torch": some(theirs)}}
    judge(result, {"most": LOSSES_BAR}, None)
    show(result, args)


def serve_rows(ours, work, listing, args, deadline):
    note(f"{listing['device']}; torch {work.torch.__version__}")
    copy, left = None, []
    for row in listing["rows"]:
        if row["op"] != "copy" and not wanted(row["name"], args):
            continue
        if time.monotonic() > deadline:
            left.append(row["name"])
            continue
        try:
            if row["op"].endswith("_losses"):
                compare_losses(ours, work, row, args)
            else:
                copy = measure(ours, work, row, copy, args)
        except Exception as error:  # of ours or of a library: the others are measured all the same
            show({"name": row["name"], "error": " ".join(str(error).split()) or type(error).__name__}, args)
        work.torch._dynamo.reset()
        work.torch.cuda.empty_cache()
    if left:
        note(f"out of time; not measured: {' '.join(left)}")


def wanted(name, args):
    return any(name.startswith(prefix) for prefix in args.rows.split(","))


# ── First use ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def fresh(args, what, cache):
    """Seconds since the start of a fresh process, by its own clock, and of the whole process."""
    command = [args.program, "--first", what, "--device", args.device] + ["--tiny"] * args.tiny
    begin = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "FORNAX_CACHE": cache})
    spent = time.perf_counter() - begin
    if ran.returncode:
        raise Failure(ran.stderr.strip() or f"--first {what} ended with {ran.returncode}")
    return json.loads(ran.stdout)["seconds"], spent


def first_peers(args, row):
    """A whole fresh process of torch."""
    if args.quick or row is None:
        return {}
    command = [sys.executable, os.path.abspath(__file__), "--program", args.program, "--device", args.device]
    begin = time.perf_counter()
    ran = subprocess.run(command + ["--first-peer", json.dumps(row)], capture_output=True, timeout=PATIENCE)
    return {"torch": round(time.perf_counter() - begin, 3)} if ran.returncode == 0 else {}


def first_use(args, what, row):
    """Cold and warm, as excess over a process that starts the device and copies a few numbers."""
    samples = {"nothing": [], "cold": [], "warm": []}
    for _ in range(2 if args.quick else 5):
        cache = tempfile.mkdtemp(prefix="fornax-bench-")
        try:
            for key, work in (("nothing", "nothing"), ("cold", what), ("warm", what)):
                samples[key].append(fresh(args, work, cache))
        finally:
            shutil.rmtree(cache, ignore_errors=True)
    middle = lambda key, which: statistics.median(sample[which] for sample in samples[key])
    for key in ("cold", "warm"):
        name = f"first_{what}_{key}"
        result = {"name": name, "value": middle(key, 0) - middle("nothing", 0), "unit": "s"}
        result |= {"driver": middle("nothing", 0), "process": middle(key, 1)}
        processes = first_peers(args, row) if key == "cold" else {}
        if processes:
            result["peer_processes"] = processes
        judge(result, {"most": FIRST_BARS[name]} if name in FIRST_BARS else {}, None)
        show(result, args)


def first_rows(args, rows, deadline):
    models = {row["op"]: row for row in rows}
    for what in ("matmul", "chain8", "mlp", "gpt", "gpt2"):
        if not wanted(f"first_{what}", args):
            continue
        if time.monotonic() > deadline:
            note(f"out of time; not measured: first_{what}")
            continue
        try:
            first_use(args, what, models.get(what + "_step"))
        except (Failure, subprocess.TimeoutExpired) as error:
            show({"name": f"first_{what}", "error": str(error)}, args)


def first_step_of_torch(args):
    import cuda_work

    cuda_work.Training(json.loads(args.first_peer), args.device).step().item()


def main():
    args = options()
    if args.first_peer:
        return first_step_of_torch(args)
    deadline = time.monotonic() + args.seconds
    ours = Ours(args)
    try:
        listing = ours.ask("list")
    except Failure as failure:
        sys.exit(f"cuda: {failure}")
    ours.stop()  # no other process may hold the device while fresh ones are timed
    first_rows(args, listing["rows"], deadline)
    if all(prefix.startswith("first") for prefix in args.rows.split(",")):
        return
    if not args.device.startswith("cuda"):
        os.environ["JAX_PLATFORMS"] = "cpu"
    import cuda_work

    try:
        serve_rows(ours, cuda_work, listing, args, deadline)
    finally:
        ours.stop()


main()
