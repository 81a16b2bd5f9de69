"""Trains a small convolutional network on CIFAR-10 and reports what ran where.

A plain PyTorch script: train_npu.py and train_gpu.py are the same program and differ in three lines. Real CIFAR-10 is used
when it lies in ./data or with --download; otherwise the 5,000 bundled images, through the same transforms.
"""

import argparse
import itertools
import statistics
import time
from pathlib import Path

import torch
import torchtitan_npu
from matplotlib import pyplot as plt
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.datasets import CIFAR10
from tqdm import tqdm

BUNDLED = Path(__file__).resolve().parent / "data" / "cifar10"


def default_device():
    return "npu" if torch.npu.is_available() else "cpu"


def fallback_counts():
    return torchtitan_npu.npu.fallback_counts()


class SimpleCNN(nn.Module):
    """Two convolution blocks and a classifier of two linear layers: 4,275,978 parameters."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(64, 128, 3, padding=1),
            nn.BatchNorm2d(128),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2, 2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(128 * 8 * 8, 512),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(512, 10),
        )

    def forward(self, images):
        return self.classifier(torch.flatten(self.features(images), 1))


class BundledCIFAR10(Dataset):
    """The first 4,000 training and 1,000 test images, in CIFAR-10's binary layout: a label, then 3 x 32 x 32 bytes."""

    def __init__(self, train, transform):
        name = "data_batch_1.bin" if train else "test_batch.bin"
        records = torch.frombuffer(bytearray((BUNDLED / name).read_bytes()), dtype=torch.uint8).view(-1, 3073)
        self.labels = records[:, 0].tolist()
        self.images = [transforms.functional.to_pil_image(image) for image in records[:, 1:].reshape(-1, 3, 32, 32)]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index]), self.labels[index]


class OperatorRecorder(TorchDispatchMode):
    """Notes the operators that reach the device while it is active: forward, backward and optimizer."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "profiler":
            self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--optimizer", choices=["adam", "adamw", "sgd"], default="adam")
    parser.add_argument("--fused", action="store_true", help="the fused form of the optimizer")
    parser.add_argument("--device", default=default_device(), help="npu, npu:1, cuda, cpu, ...")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the DataLoader")
    parser.add_argument("--pin-memory", action="store_true", help="pinned batches, copied asynchronously")
    parser.add_argument("--data", default="data", help="folder of torchvision's CIFAR-10")
    parser.add_argument("--download", action="store_true", help="fetch CIFAR-10 into --data")
    parser.add_argument("--max-steps", type=int, help="end every epoch after this many steps")
    parser.add_argument("--output", default="output", help="folder for the state dict and the plot")
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    return parser.parse_args()


def make_loaders(arguments):
    normalize = [transforms.ToTensor(), transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))]
    augment = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *normalize])
    plain = transforms.Compose(normalize)
    if arguments.download or (Path(arguments.data) / CIFAR10.base_folder).is_dir():
        train_set = CIFAR10(arguments.data, train=True, transform=augment, download=arguments.download)
        test_set = CIFAR10(arguments.data, train=False, transform=plain, download=arguments.download)
    else:
        train_set = BundledCIFAR10(train=True, transform=augment)
        test_set = BundledCIFAR10(train=False, transform=plain)
    print(f"data: {type(train_set).__name__}, {len(train_set)} training and {len(test_set)} test images")
    options = {"num_workers": arguments.workers, "pin_memory": arguments.pin_memory}
    train_loader = DataLoader(train_set, batch_size=arguments.batch_size, shuffle=True, **options)
    test_loader = DataLoader(test_set, batch_size=arguments.batch_size, **options)
    return train_loader, test_loader


def make_optimizer(arguments, model):
    if arguments.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9, fused=arguments.fused or None)
    kind = torch.optim.Adam if arguments.optimizer == "adam" else torch.optim.AdamW
    return kind(model.parameters(), lr=arguments.lr, fused=arguments.fused or None)


class Trainer:
    """The model, its optimizer and what is measured on the way."""

    def __init__(self, arguments):
        self.threads = torch.get_num_threads()  # a loader that pins memory lowers it
        self.arguments = arguments
        self.device = torch.device(arguments.device)
        self.model = SimpleCNN().to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = make_optimizer(arguments, self.model)
        self.recorder = OperatorRecorder()
        self.step_seconds = []
        self.losses = []
        self.accuracies = []

    def to_device(self, batch):
        return [part.to(self.device, non_blocking=self.arguments.pin_memory) for part in batch]

    def step(self, batch):
        images, labels = self.to_device(batch)
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train_epoch(self, loader, epoch):
        self.model.train()
        total = self.arguments.max_steps or len(loader)
        batches = itertools.islice(loader, total)
        progress = tqdm(batches, total=total, desc=f"epoch {epoch}", disable=self.arguments.no_progress, mininterval=0.5)
        losses = []
        for batch in progress:
            begin = time.perf_counter()
            if self.recorder.names:
                losses.append(self.step(batch))
                self.step_seconds.append(time.perf_counter() - begin)
            else:  # the first step of all: not timed, but watched
                with self.recorder:
                    losses.append(self.step(batch))
            progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
        self.losses.append(statistics.fmean(losses))

    @torch.no_grad()
    def test(self, loader):
        self.model.eval()
        right = 0
        for batch in loader:
            images, labels = self.to_device(batch)
            right += (self.model(images).argmax(1) == labels).sum().item()
        self.accuracies.append(right / len(loader.dataset))


def plot_curves(trainer, path):
    plt.switch_backend("Agg")  # works without a display
    epochs = range(1, len(trainer.losses) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.plot(epochs, trainer.losses, marker="o")
    left.set(title="training loss", xlabel="epoch")
    right.plot(epochs, trainer.accuracies, marker="o", color="tab:green")
    right.set(title="test accuracy", xlabel="epoch", ylim=(0, 1))
    figure.suptitle(f"SimpleCNN on {trainer.device}, torch {torch.__version__}")
    figure.tight_layout()
    figure.savefig(path)


def report(trainer):
    fallbacks = fallback_counts()
    native = sorted(trainer.recorder.names - set(fallbacks))
    seconds = trainer.step_seconds or [0.0]
    times = [f"{1000 * value:.1f}" for value in statistics.quantiles(seconds * 2, n=4)]  # doubled: works for one step
    print(f"\ndevice          {trainer.device}, torch {torch.__version__}, {trainer.threads} host threads")
    print(f"step time       median {times[1]} ms (quartiles {times[0]} to {times[2]}), {len(trainer.step_seconds)} steps")
    print(f"test accuracy   {trainer.accuracies[-1]:.4f}")
    print(f"ran natively    {len(native)} operators: {', '.join(native)}")
    listing = ", ".join(f"{name} ({count} calls)" for name, count in sorted(fallbacks.items()))
    print(f"fell back       {len(fallbacks)} operators{': ' if fallbacks else ''}{listing}")


def main():
    arguments = parse_arguments()
    output = Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)  # before the training: a wrong path shouldn't cost it
    torch.manual_seed(arguments.seed)
    train_loader, test_loader = make_loaders(arguments)
    trainer = Trainer(arguments)
    for epoch in range(1, arguments.epochs + 1):
        trainer.train_epoch(train_loader, epoch)
        trainer.test(test_loader)
        print(f"epoch {epoch}: loss {trainer.losses[-1]:.4f}, test accuracy {trainer.accuracies[-1]:.4f}", flush=True)
    torch.save(trainer.model.state_dict(), output / "simple_cnn.pt")
    plot_curves(trainer, output / "curves.png")
    report(trainer)
    print(f"saved           {output / 'simple_cnn.pt'} and {output / 'curves.png'}")


if __name__ == "__main__":
    main()
