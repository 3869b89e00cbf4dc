"""PyTorch on the CPU, timed on the work of the benches; prints a JSON object a figure."""

import torch
from torch import nn
import torch.nn.functional as F

import common
import rows
import torch_rows


def small_add(rounds):
    a, b = torch.rand(16), torch.rand(16)

    def independent():
        for _ in range(common.CHAIN):
            a + b

    def chain():
        y = a
        for _ in range(common.CHAIN):
            y = y + b

    common.time_adds("small_add", rounds, independent)
    common.time_adds("small_add_chain", rounds, chain)


def cnn_epoch(args):
    images, labels = common.fashion_mnist(args.data)
    x = (torch.frombuffer(images, dtype=torch.uint8).view(-1, 1, 28, 28) / 255 - 0.2860) / 0.3530
    y = torch.frombuffer(labels, dtype=torch.uint8).long()
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10),
    )
    # The fused kernel is torch's fastest Adam on the CPU.
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, fused=True)
    loss_of = lambda images, labels: F.cross_entropy(net(images), labels)
    if args.compile:
        loss_of = torch.compile(loss_of)

    def step(batch):
        index = torch.tensor(batch)
        adam.zero_grad()
        loss = loss_of(x[index], y[index])
        loss.backward()
        adam.step()
        return loss.item()

    common.time_cnn(args, step)


def make_row(row, compiled):
    """Convolutions with channels second and last in memory, of which the faster counts."""
    torch.compiler.reset()
    model, op = row["op"] in rows.MODELS, row["op"]
    if rows.base(op) == "resnet18":
        calls = [torch_rows.resnet_peer(row, channels_last) for channels_last in (False, True)]
    elif model:
        layouts = (False, True) if op == "cnn_step" else (False,)
        trainings = [torch_rows.Training(row, "cpu", compiled=compiled, channels_last=layout) for layout in layouts]
        calls = [lambda turn, t=t: (t.step(),) for t in trainings]
    elif torch_rows.function_of(row) is None:
        return None
    else:
        ring = [rows.inputs(row, 0, torch_rows.numbers_of(row, "cpu"))]
        rings = [ring, [torch_rows.last(ring[0], True)]] if op == "conv" else [ring]
        calls = [torch_rows.peer(row, ring, "cpu", compiled) for ring in rings]
    return common.Served([lambda call=call: call(0) for call in calls], lambda results: [t.detach().numpy() for t in results])


def serve(compiled):
    common.serve(lambda row: make_row(row, compiled))


args = common.options(__doc__, compile="cnn_epoch, rows: through torch.compile (needs g++)")
torch.set_num_threads(args.threads)
torch.manual_seed(0)
if args.work == "small_add":
    small_add(args.repeat)
elif args.work == "rows":
    serve(args.compile)
else:
    cnn_epoch(args)
