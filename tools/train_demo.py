"""Trains the demo's classifier with torch and writes its weights as .npz; needs no Litesmith.

    python tools/train_demo.py FOLDER weights.npz [--device cuda] [--epochs 60] [--seed 0]

FOLDER holds the four files of Fashion-MNIST. Only its training part is learned from: the test part
is scored once, at the end, and nothing is chosen by that score.
"""

import gzip
from argparse import ArgumentParser
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

# The files, without -ubyte.gz, by the SHA-256 of what they unpack to: mirrors pack it differently.
FILES = {
    "train-images-idx3": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
HEADS = {"images": 16, "labels": 8}  # bytes before the numbers
SIDE, CLASSES = 28, 10
BATCH = 256
MOST_SHIFT = 2  # pixels by which a training image is moved
EPSILON = 1e-3  # of batch normalization


class Layer(NamedTuple):
    """A convolution with batch normalization and RELU; a depthwise one keeps its channels."""

    kind: str
    size: int
    channels: int
    stride: int = 1


PLAN = (
    Layer("conv", 3, 32),
    Layer("conv", 3, 32),
    Layer("conv", 3, 32),
    Layer("depthwise", 3, 32, 2),
    Layer("conv", 1, 48),
    Layer("conv", 3, 48),
    Layer("depthwise", 3, 48, 2),
    Layer("conv", 1, 96),
    Layer("depthwise", 3, 96),
    Layer("conv", 1, 96),
)


class Net(nn.Module):
    """The plan as torch code, then the mean over the image and one dense layer."""

    def __init__(self) -> None:
        super().__init__()
        convs: list[nn.Module] = []
        channels = 1
        for layer in PLAN:
            groups = channels if layer.kind == "depthwise" else 1
            convs.append(
                nn.Conv2d(channels, layer.channels, layer.size, layer.stride, groups=groups)
            )
            channels = layer.channels
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(each.channels, EPSILON) for each in PLAN)
        self.dense = nn.Linear(channels, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        for layer, conv, norm in zip(PLAN, self.convs, self.norms, strict=True):
            before, after = padding(layer)
            padded = functional.pad(x, (before, after, before, after))
            x = functional.relu(norm(conv(padded)))
        return self.dense(x.mean(dim=(2, 3)))


def padding(layer: Layer) -> tuple[int, int]:
    """Zeros before and after, as SAME has them where the stride divides the size."""
    total = layer.size - layer.stride
    return total // 2, total - total // 2


def fashion(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Reads images (n, 28, 28) and labels (n,) of a part, `train` or `t10k`, both uint8."""
    images, labels = (_numbers(folder, f"{part}-{what}") for what in HEADS)
    return images.reshape(-1, SIDE, SIDE), labels


def _numbers(folder: Path, stem: str) -> np.ndarray:
    name = next(n for n in FILES if n.startswith(stem))
    path = folder / f"{name}-ubyte.gz"
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; give the folder of Fashion-MNIST's four files")
    content = gzip.decompress(path.read_bytes())
    if sha256(content).hexdigest() != FILES[name]:
        raise SystemExit(f"{path}: holds other data than Fashion-MNIST; get it anew")
    return np.frombuffer(content, np.uint8, offset=HEADS[stem.partition("-")[2]])


def train(folder: Path, *, device: str, epochs: int, seed: int) -> Net:
    """Trains a net on the training part for this many epochs."""
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = True
    images, labels = (torch.tensor(part).to(device) for part in fashion(folder, "train"))
    net = Net().to(device)
    steps = epochs * (len(images) // BATCH)
    learner = torch.optim.AdamW(net.parameters(), weight_decay=0.02)
    rate = torch.optim.lr_scheduler.OneCycleLR(learner, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        net.train()
        losses = [
            _step(net, learner, rate, images[chosen], labels[chosen])
            for chosen in torch.randperm(len(images)).split(BATCH)
            if len(chosen) == BATCH
        ]
        print(f"epoch {epoch + 1} of {epochs}: loss {torch.stack(losses).mean():.4f}", flush=True)
    return net.eval()


def _step(
    net: Net,
    learner: torch.optim.Optimizer,
    rate: torch.optim.lr_scheduler.LRScheduler,
    images: Tensor,
    labels: Tensor,
) -> Tensor:
    loss = functional.cross_entropy(net(_moved(images)), labels.long())
    learner.zero_grad()
    loss.backward()
    learner.step()
    rate.step()
    return loss.detach()


def _moved(images: Tensor) -> Tensor:
    """Training images as the net takes them, (n, 1, 28, 28) from 0 to 1: each shifted, half of them
    mirrored."""
    count = len(images)
    padded = functional.pad(images, (MOST_SHIFT,) * 4)
    starts = torch.randint(0, 2 * MOST_SHIFT + 1, (2, count, 1)).to(images.device)
    places = torch.arange(SIDE, device=images.device)
    rows, columns = starts[0] + places, starts[1] + places
    is_mirrored = torch.rand(count, 1).to(images.device) < 0.5
    columns = torch.where(is_mirrored, columns.flip(1), columns)
    each = torch.arange(count, device=images.device)
    chosen = padded[each[:, None, None], rows[:, :, None], columns[:, None, :]]
    return chosen[:, None].float() / 255


@torch.no_grad()
def share_right(net: Net, images: np.ndarray, labels: np.ndarray) -> float:
    """Top-1 on images as they are stored."""
    device = next(net.parameters()).device
    batches = torch.tensor(images)[:, None].to(device).split(1000)
    best = torch.cat([net(batch.float() / 255).argmax(dim=1) for batch in batches])
    return float(np.mean(best.cpu().numpy() == labels))


@torch.no_grad()
def weights(net: Net) -> dict[str, np.ndarray]:
    """Weights in TFLite's order of dimensions; batch normalization as a scale and an offset."""
    found: dict[str, Tensor] = {}
    for index, (layer, conv, norm) in enumerate(zip(PLAN, net.convs, net.norms, strict=True)):
        order = (1, 2, 3, 0) if layer.kind == "depthwise" else (0, 2, 3, 1)
        assert isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
        assert (
            conv.bias is not None and norm.running_var is not None and norm.running_mean is not None
        )
        scale = norm.weight / torch.sqrt(norm.running_var + EPSILON)
        found[f"{index}.weight"] = conv.weight.permute(order)
        found[f"{index}.bias"] = conv.bias
        found[f"{index}.scale"] = scale
        found[f"{index}.offset"] = norm.bias - norm.running_mean * scale
    found["dense.weight"], found["dense.bias"] = net.dense.weight, net.dense.bias
    return {name: np.ascontiguousarray(value.cpu().numpy()) for name, value in found.items()}


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the four files of Fashion-MNIST are")
    parser.add_argument("weights", type=Path, help="the .npz to write")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    net = train(given.folder, device=given.device, epochs=given.epochs, seed=given.seed)
    np.savez(given.weights, allow_pickle=False, **weights(net))
    print(f"top-1 on the test part: {share_right(net, *fashion(given.folder, 't10k')):.4f}")


if __name__ == "__main__":
    main()
