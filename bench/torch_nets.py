"""Twenty architectures in a few lines of torch each, with random weights and realistic sizes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def block(
    i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: type | None = nn.ReLU
) -> nn.Module:
    """Convolution, normalization, activation."""
    layers = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Add(nn.Module):
    """A branch beside what goes past it."""

    def __init__(
        self, inner: nn.Module, past: nn.Module | None = None, after: nn.Module | None = None
    ):
        super().__init__()
        self.inner, self.past, self.after = inner, past or nn.Identity(), after or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.past(x) + self.inner(x))


class Squeeze(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, count: int, inner: int, act: type = nn.ReLU, gate: type = nn.Hardsigmoid):
        super().__init__()
        self.down, self.up = nn.Conv2d(count, inner, 1), nn.Conv2d(inner, count, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.up(self.act(self.down(F.adaptive_avg_pool2d(x, 1)))))


def head(count: int, classes: int = 1000) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(count, classes)]


def inverted(
    i: int, o: int, k: int, s: int, wide: int, act: type, squeeze: nn.Module | None = None
) -> nn.Module:
    inner = [block(i, wide, 1, act=act)] if wide != i else []
    inner += [block(wide, wide, k, s, wide, act), *([squeeze] if squeeze else [])]
    inner.append(block(wide, o, 1, act=None))
    body = nn.Sequential(*inner)
    return Add(body) if s == 1 and i == o else body


def mobilenet_v2() -> nn.Module:
    layers, i = [block(3, 32, 3, 2, act=nn.ReLU6), inverted(32, 16, 3, 1, 32, nn.ReLU6)], 16
    for o, n, s in ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)):
        for place in range(n):
            layers.append(inverted(i, o, 3, s if not place else 1, 6 * i, nn.ReLU6))
            i = o
    return nn.Sequential(*layers, block(320, 1280, 1, act=nn.ReLU6), *head(1280))


def mobilenet_v3() -> nn.Module:
    layers, i = [block(3, 16, 3, 2, act=nn.Hardswish)], 16
    rows = ((16, 16, 3, 2, 1), (72, 24, 3, 2, 0), (88, 24, 3, 1, 0), (96, 40, 5, 2, 1))
    rows += ((240, 40, 5, 1, 1), (120, 48, 5, 1, 1), (288, 96, 5, 2, 1), (576, 96, 5, 1, 1))
    for wide, o, k, s, se in rows:
        act = nn.ReLU if o < 40 else nn.Hardswish
        layers.append(inverted(i, o, k, s, wide, act, Squeeze(wide, wide // 4) if se else None))
        i = o
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish()]
    return nn.Sequential(*layers, block(96, 576, 1, act=nn.Hardswish), *tail, nn.Linear(1024, 1000))


def efficientnet() -> nn.Module:
    layers, i = [block(3, 32, 3, 2, act=nn.SiLU)], 32
    rows = (
        (1, 16, 3, 1, 1),
        (6, 24, 3, 2, 2),
        (6, 40, 5, 2, 2),
        (6, 80, 3, 2, 3),
        (6, 112, 5, 1, 3),
    )
    for times, o, k, s, n in (*rows, (6, 192, 5, 2, 4), (6, 320, 3, 1, 1)):
        for place in range(n):
            gate = Squeeze(i * times, max(i // 4, 1), nn.SiLU, nn.Sigmoid)
            layers.append(inverted(i, o, k, s if not place else 1, i * times, nn.SiLU, gate))
            i = o
    return nn.Sequential(*layers, block(320, 1280, 1, act=nn.SiLU), *head(1280))


def resnet() -> nn.Module:
    layers, i = [block(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for o, s in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (s, 1):
            past = block(i, o, 1, stride, act=None) if stride != 1 or i != o else None
            inner = nn.Sequential(block(i, o, 3, stride), block(o, o, 3, act=None))
            layers.append(Add(inner, past, nn.ReLU()))
            i = o
    return nn.Sequential(*layers, *head(512))


class Turned(nn.Module):
    """A module that sees the channels last."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Scale(nn.Module):
    def __init__(self, count: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((count,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


def convnext() -> nn.Module:
    layers, i = [nn.Conv2d(3, 48, 4, 4), Turned(nn.LayerNorm(48))], 48
    for o, n in ((48, 2), (96, 2), (192, 4), (384, 2)):
        if o != i:
            layers += [Turned(nn.LayerNorm(i)), nn.Conv2d(i, o, 2, 2)]
        for _ in range(n):
            parts = [nn.LayerNorm(o), nn.Linear(o, 4 * o), nn.GELU(), nn.Linear(4 * o, o), Scale(o)]
            layers.append(
                Add(
                    nn.Sequential(nn.Conv2d(o, o, 7, 1, 3, groups=o), Turned(nn.Sequential(*parts)))
                )
            )
        i = o
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(384), nn.Linear(384, 1000)
    )


class Shuffle(nn.Module):
    """A unit of ShuffleNet v2."""

    def __init__(self, i: int, o: int, s: int):
        super().__init__()
        half = o // 2
        self.split = s == 1
        first = half if self.split else i
        self.left = nn.Sequential(block(i, i, 3, 2, i, None), block(i, half, 1))
        self.right = nn.Sequential(
            block(first, half, 1), block(half, half, 3, s, half, None), block(half, half, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.split:
            left, right = x.chunk(2, 1)
            made = torch.cat((left, self.right(right)), 1)
        else:
            made = torch.cat((self.left(x), self.right(x)), 1)
        n, c, h, w = made.shape
        return made.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> nn.Module:
    layers, i = [block(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for o, n in ((116, 4), (232, 8), (464, 4)):
        layers += [Shuffle(i, o, 2), *(Shuffle(o, o, 1) for _ in range(n - 1))]
        i = o
    return nn.Sequential(*layers, block(464, 1024, 1), *head(1024))


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)):
        super().__init__()
        pairs = list(zip((3, *widths), widths, strict=False))
        self.down = nn.ModuleList(nn.Sequential(block(i, o), block(o, o)) for i, o in pairs)
        back = list(zip(widths[:0:-1], widths[-2::-1], strict=False))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in back)
        self.up = nn.ModuleList(nn.Sequential(block(2 * o, o), block(o, o)) for _, o in back)
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for part in self.down:
            x = part(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for grow, up, side in zip(self.grow, self.up, kept[-2::-1], strict=False):
            x = up(torch.cat((grow(x), side), 1))
        return self.last(x)


class DeepLab(nn.Module):
    """Pyramid of dilated convolutions over a small backbone."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(3, 32, 3, 2), block(32, 64, 3, 2), block(64, 128, 3, 2))
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(128, 64, 3, padding=d, dilation=d, bias=False),
                nn.BatchNorm2d(64),
                nn.ReLU(),
            )
            for d in (2, 4, 6)
        )
        self.one, self.pooled = block(128, 64, 1), block(128, 64, 1)
        self.last = nn.Sequential(block(320, 64, 1), nn.Conv2d(64, 21, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        far = F.interpolate(
            self.pooled(F.adaptive_avg_pool2d(y, 1)), size=y.shape[2:], mode="bilinear"
        )
        joined = torch.cat([self.one(y), *(p(y) for p in self.parts), far], 1)
        return F.interpolate(
            self.last(joined), size=x.shape[2:], mode="bilinear", align_corners=False
        )


class SSD(nn.Module):
    def __init__(self, anchors: int = 6, classes: int = 21):
        super().__init__()
        self.classes = classes
        self.body = nn.ModuleList(
            (
                nn.Sequential(
                    block(3, 32, 3, 2),
                    inverted(32, 64, 3, 2, 96, nn.ReLU6),
                    inverted(64, 96, 3, 2, 192, nn.ReLU6),
                ),
                inverted(96, 128, 3, 2, 256, nn.ReLU6),
                inverted(128, 256, 3, 2, 384, nn.ReLU6),
            )
        )
        self.boxes = nn.ModuleList(nn.Conv2d(c, anchors * 4, 3, padding=1) for c in (96, 128, 256))
        self.scores = nn.ModuleList(
            nn.Conv2d(c, anchors * classes, 3, padding=1) for c in (96, 128, 256)
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        boxes, scores = [], []
        for part, box, score in zip(self.body, self.boxes, self.scores, strict=False):
            x = part(x)
            boxes.append(box(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4))
            scores.append(score(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, self.classes))
        return {"boxes": torch.cat(boxes, 1), "scores": torch.cat(scores, 1).softmax(-1)}


class Yolo(nn.Module):
    """A small backbone, a path up and down, and heads that decode boxes."""

    def __init__(self, classes: int = 20):
        super().__init__()
        self.stem = nn.Sequential(block(3, 16, 3, 2, act=nn.SiLU), block(16, 32, 3, 2, act=nn.SiLU))
        self.p3, self.p4, self.p5 = (block(i, 2 * i, 3, 2, act=nn.SiLU) for i in (32, 64, 128))
        self.n4, self.n3 = block(384, 128, act=nn.SiLU), block(192, 64, act=nn.SiLU)
        self.d4, self.m4 = block(64, 64, 3, 2, act=nn.SiLU), block(192, 128, act=nn.SiLU)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.heads = nn.ModuleList(nn.Conv2d(c, 5 + classes, 1) for c in (64, 128))

    def forward(self, x: Tensor) -> Tensor:
        a = self.p3(self.stem(x))
        b = self.p4(a)
        c = self.p5(b)
        c = c + self.pool(c)
        d = self.n4(torch.cat((F.interpolate(c, scale_factor=2.0), b), 1))
        e = self.n3(torch.cat((F.interpolate(d, scale_factor=2.0), a), 1))
        f = self.m4(torch.cat((self.d4(e), d), 1))
        found = []
        for head_, y, stride in zip(self.heads, (e, f), (8, 16), strict=False):
            made = head_(y)
            n, k, h, w = made.shape
            made = made.view(n, k, h * w).transpose(1, 2)
            rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            grid = torch.stack((columns, rows), -1).view(1, -1, 2).float()
            centre = (made[..., :2].sigmoid() * 2 - 0.5 + grid) * stride
            size = (made[..., 2:4].sigmoid() * 2) ** 2 * stride
            found.append(torch.cat((centre, size, made[..., 4:].sigmoid()), -1))
        return torch.cat(found, 1)


class Recurrent(nn.Module):
    def __init__(self, cell: nn.Module, width: int):
        super().__init__()
        self.cell, self.last = cell, nn.Linear(width, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.cell(x)[0][:, -1])


class Attention(nn.Module):
    """Heads over a sequence, as models in the wild write them."""

    def __init__(self, width: int, heads: int, causal: bool = False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, t, c))


def feed(width: int, act: type = nn.GELU, times: int = 4) -> nn.Module:
    return nn.Sequential(nn.Linear(width, times * width), act(), nn.Linear(times * width, width))


def layer(width: int, heads: int, causal: bool = False) -> nn.Module:
    return nn.Sequential(
        Add(nn.Sequential(nn.LayerNorm(width), Attention(width, heads, causal))),
        Add(nn.Sequential(nn.LayerNorm(width), feed(width))),
    )


class Gated(nn.Module):
    """The convolution of a Conformer."""

    def __init__(self, width: int, kernel: int = 15):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.back = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.deep = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.stats = nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = F.glu(self.wide(self.norm(x).transpose(1, 2)), 1)
        return self.back(F.silu(self.stats(self.deep(y)))).transpose(1, 2)


class Half(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * self.inner(x)


def conformer(width: int = 144) -> nn.Module:
    feeds = [Add(Half(nn.Sequential(nn.LayerNorm(width), feed(width, nn.SiLU)))) for _ in range(2)]
    middle = Add(nn.Sequential(nn.LayerNorm(width), Attention(width, 4)))
    return nn.Sequential(feeds[0], middle, Add(Gated(width)), feeds[1], nn.LayerNorm(width))


class ViT(nn.Module):
    def __init__(self, width: int = 192, depth: int = 4):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers = nn.Sequential(*(layer(width, 3) for _ in range(depth)))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.token.expand(x.shape[0], -1, -1), y), 1) + self.places
        return self.last(self.norm(self.layers(y))[:, 0])


class Swin(nn.Module):
    """Attention in windows that are moved by half their size."""

    def __init__(
        self, width: int = 96, heads: int = 3, window: int = 7, shift: int = 3, size: int = 28
    ):
        super().__init__()
        self.window, self.shift, self.heads = window, shift, heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out, self.feed = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            feed(width),
        )
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        grid = torch.stack(torch.meshgrid(*[torch.arange(window)] * 2, indexing="ij")).flatten(1)
        gap = (grid[:, :, None] - grid[:, None]) + window - 1
        self.register_buffer("places", gap[0] * (2 * window - 1) + gap[1])
        parts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        image = torch.zeros(1, size, size, 1)
        for number, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
            image[:, rows, columns] = number
        flat = self.cut(image).squeeze(-1)
        self.register_buffer("mask", (flat[:, None] != flat[:, :, None]).float() * -100)

    def cut(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        size = self.window
        x = x.view(n, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, size * size, c)

    def forward(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        size = self.window
        y = torch.roll(self.norms[0](x), (-self.shift, -self.shift), (1, 2))
        y = self.cut(y)
        t = y.shape[1]
        q, k, v = self.qkv(y).view(-1, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.table[self.places.view(-1)].view(t, t, -1).permute(2, 0, 1)
        scores = scores + self.mask[:, None]
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, t, c))
        y = (
            y.view(n, h // size, w // size, size, size, c)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(n, h, w, c)
        )
        x = x + torch.roll(y, (self.shift, self.shift), (1, 2))
        return x + self.feed(self.norms[1](x))


class Bert(nn.Module):
    def __init__(self, width: int = 128, words: int = 8000, length: int = 128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, activation="gelu", batch_first=True)
            for _ in range(3)
        )
        self.pool = nn.Linear(width, width)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        for part in self.layers:
            x = part(x, src_key_padding_mask=mask == 0)
        return torch.tanh(self.pool(x[:, 0]))


class GPT(nn.Module):
    def __init__(self, width: int = 192, words: int = 5000, length: int = 64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.query, self.out, self.feed = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            feed(width),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.register_buffer(
            "seen", torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        )

    def forward(self, ids: Tensor) -> Tensor:
        n, t = ids.shape
        x = self.words(ids) + self.places(torch.arange(t, device=ids.device))
        c = x.shape[-1]
        q, k, v = (
            p.view(n, t, 6, c // 6).transpose(1, 2)
            for p in self.query(self.norms[0](x)).split(c, 2)
        )
        scores = q @ k.transpose(-2, -1) * (c // 6) ** -0.5
        scores = scores.masked_fill(self.seen[:, :, :t, :t] == 0, float("-inf")).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).contiguous().view(n, t, c))
        x = self.norms[2](x + self.feed(self.norms[1](x)))
        return x @ self.words.weight.t()


class Whisper(nn.Module):
    def __init__(self, width: int = 192, length: int = 200, depth: int = 2):
        super().__init__()
        self.first, self.second = (
            nn.Conv1d(80, width, 3, padding=1),
            nn.Conv1d(width, width, 3, 2, 1),
        )
        self.register_buffer("places", torch.randn(length, width) * 0.1)
        self.layers = nn.Sequential(*(layer(width, 4) for _ in range(depth)), nn.LayerNorm(width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.second(F.gelu(self.first(x)))).permute(0, 2, 1)
        return self.layers(y + self.places)


class Swap(nn.Module):
    """A module along the other axis."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


def mixer(width: int = 128, depth: int = 4) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 16, 16), nn.Flatten(2), Swap(nn.Identity())]
    for _ in range(depth):
        layers.append(Add(nn.Sequential(nn.LayerNorm(width), Swap(feed(196, times=1)))))
        layers.append(Add(nn.Sequential(nn.LayerNorm(width), feed(width))))
    return nn.Sequential(
        Swap2(nn.Sequential(*layers)), nn.LayerNorm(width), Mean(), nn.Linear(width, 1000)
    )


class Swap2(nn.Module):
    """Patches, width last."""

    def __init__(self, inner: nn.Sequential):
        super().__init__()
        self.patch, self.flat, self.layers = inner[0], inner[1], inner[3:]

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.flat(self.patch(x)).transpose(1, 2))


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


class SuperResolution(nn.Module):
    def __init__(self, times: int = 3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 48, 5, padding=2), nn.PReLU(48), nn.Conv2d(48, 32, 3, padding=1), nn.ReLU()
        )
        self.last, self.grow = nn.Conv2d(32, 3 * times**2, 3, padding=1), nn.PixelShuffle(times)
        self.times = times

    def forward(self, x: Tensor) -> Tensor:
        made = self.grow(self.last(self.body(x)))
        return (made + F.interpolate(x, scale_factor=float(self.times), mode="bicubic")).clamp(0, 1)


def generator() -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(64, 256 * 4 * 4), nn.Unflatten(1, (256, 4, 4))]
    for i, o in ((256, 128), (128, 64), (64, 32)):
        layers += [
            nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False),
            nn.BatchNorm2d(o),
            nn.LeakyReLU(0.2),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 3, 2, 1, output_padding=1), nn.Tanh())


def image(size: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(1, 3, size, size),)


def sequence(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(1, *shape),)


def _words() -> tuple[Tensor, ...]:
    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, 100:] = 0
    return torch.randint(0, 8000, (1, 128)), mask


# A row each: how it is built, and its inputs.
NETS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "mobilenet_v2": (mobilenet_v2, image(224)),
    "mobilenet_v3": (mobilenet_v3, image(224)),
    "efficientnet": (efficientnet, image(224)),
    "resnet": (resnet, image(224)),
    "convnext": (convnext, image(224)),
    "shufflenet": (shufflenet, image(224)),
    "unet": (UNet, image(128)),
    "deeplab": (DeepLab, image(128)),
    "ssd": (SSD, image(160)),
    "yolo": (Yolo, image(160)),
    "lstm": (lambda: Recurrent(nn.LSTM(40, 64, 2, batch_first=True), 64), sequence(50, 40)),
    "gru": (
        lambda: Recurrent(nn.GRU(40, 64, batch_first=True, bidirectional=True), 128),
        sequence(50, 40),
    ),
    "conformer": (conformer, sequence(100, 144)),
    "vit": (ViT, image(224)),
    "swin": (Swin, sequence(28, 28, 96)),
    "bert": (Bert, _words),
    "gpt": (GPT, lambda: (torch.randint(0, 5000, (1, 64)),)),
    "whisper": (Whisper, sequence(80, 400)),
    "mixer": (mixer, image(224)),
    "super_resolution": (SuperResolution, image(96)),
    "gan": (generator, lambda: (torch.randn(1, 64),)),
}


def build(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A network with weights and statistics that are the same in every process, and its inputs."""
    torch.manual_seed(0)
    module = NETS[name][0]().eval()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d | nn.BatchNorm1d):
            nn.init.uniform_(part.running_mean, -0.2, 0.2)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
    return module, NETS[name][1]()
