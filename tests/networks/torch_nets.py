"""Networks in plain torch, their modules named and ordered as torchvision's are."""

import torch
from torch import nn


def conv_norm(
    inputs: int, outputs: int, window: int, stride: int, groups: int, act: nn.Module, eps: float
) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs, eps), act)


class Inverted(nn.Module):
    """MobileNet v2's block."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(conv_norm(inputs, inner, 1, 1, 1, nn.ReLU6(), 1e-5))
        layers.append(conv_norm(inner, inner, 3, stride, inner, nn.ReLU6(), 1e-5))
        layers += [nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.conv = nn.Sequential(*layers)
        self.is_sum = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.is_sum else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 32, 3, 2, 1, nn.ReLU6(), 1e-5)]
        inputs = 32
        for expansion, outputs, repeats, stride in (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ):
            for repeat in range(repeats):
                layers.append(Inverted(inputs, outputs, expansion, 1 if repeat else stride))
                inputs = outputs
        layers.append(conv_norm(320, 1280, 1, 1, 1, nn.ReLU6(), 1e-5))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class Gate(nn.Module):
    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, inner, 1)
        self.fc2 = nn.Conv2d(inner, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.fc1(x.mean((2, 3), keepdim=True)))
        return x * nn.functional.hardsigmoid(self.fc2(inner))


class Searched(nn.Module):
    """MobileNet v3's block."""

    def __init__(self, inputs: int, row: tuple[int, int, int, int, bool, int]) -> None:
        super().__init__()
        window, inner, outputs, squeezed, swish, stride = row
        act = nn.Hardswish() if swish else nn.ReLU()
        layers: list[nn.Module] = []
        if inner != inputs:
            layers.append(conv_norm(inputs, inner, 1, 1, 1, act, 1e-3))
        layers.append(conv_norm(inner, inner, window, stride, inner, act, 1e-3))
        if squeezed:
            layers.append(Gate(inner, squeezed))
        layers.append(conv_norm(inner, outputs, 1, 1, 1, nn.Identity(), 1e-3))
        self.block = nn.Sequential(*layers)
        self.is_sum = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.block(x) if self.is_sum else self.block(x)


# window, inner channels, output channels, channels of the gate, hard swish, stride
_SMALL = (
    (3, 16, 16, 8, False, 2),
    (3, 72, 24, 0, False, 2),
    (3, 88, 24, 0, False, 1),
    (5, 96, 40, 24, True, 2),
    (5, 240, 40, 64, True, 1),
    (5, 240, 40, 64, True, 1),
    (5, 120, 48, 32, True, 1),
    (5, 144, 48, 40, True, 1),
    (5, 288, 96, 72, True, 2),
    (5, 576, 96, 144, True, 1),
    (5, 576, 96, 144, True, 1),
)


class MobileNetV3Small(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 16, 3, 2, 1, nn.Hardswish(), 1e-3)]
        inputs = 16
        for row in _SMALL:
            layers.append(Searched(inputs, row))
            inputs = row[2]
        layers.append(conv_norm(96, 576, 1, 1, 1, nn.Hardswish(), 1e-3))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class Pair(nn.Module):
    """The block of ResNet-18 and 34."""

    grows = 1

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = shortcut(inputs, channels, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    """The block of ResNet-50."""

    grows = 4

    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv3 = nn.Conv2d(channels, 4 * channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * channels)
        self.downsample = shortcut(inputs, 4 * channels, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        inner = self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(inner)))))
        return torch.relu(inner + (self.downsample(x) if self.downsample else x))


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    def __init__(self, block: type[Pair | Bottleneck], repeats: tuple[int, ...], classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for stage, count in enumerate(repeats):
            blocks: list[nn.Module] = []
            for number in range(count):
                stride = 2 if stage and not number else 1
                blocks.append(block(inputs, 64 << stage, stride))
                inputs = (64 << stage) * block.grows
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


def taught(network: nn.Module, seed: int) -> nn.Module:
    """With statistics of batch normalization that are not the trivial ones."""
    torch.manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.8, 1.4)
            nn.init.normal_(module.bias, 0, 0.2)
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.3, 1.0)
    return network.eval()


NETWORKS = {
    "mobilenet_v2": lambda: MobileNetV2(11),
    "mobilenet_v3_small": lambda: MobileNetV3Small(11),
    "resnet18": lambda: ResNet(Pair, (2, 2, 2, 2), 11),
    "resnet50": lambda: ResNet(Bottleneck, (3, 4, 6, 3), 11),
}
