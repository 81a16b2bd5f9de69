"""Random numbers of the device: one Philox generator per device, seeded by torch.manual_seed too. Nothing here starts the runtime."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torchtitan_npu import _bridge
from torchtitan_npu.npu._utils import Device, checked_index
from torchtitan_npu.npu.devices import device_count


def _generator(device: Device = None) -> torch.Generator:
    return _bridge.default_generator(checked_index(device))


def default_generators() -> tuple[torch.Generator, ...]:
    """The default generator of each device."""
    return tuple(_generator(index) for index in range(device_count()))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for generator in default_generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a number that differs from run to run."""
    _generator().seed()


def seed_all() -> None:
    """Seeds the generators of all devices with one number that differs from run to run."""
    number: int | None = None
    for generator in default_generators():
        if number is None:
            generator.seed()
            number = generator.initial_seed()
        else:
            generator.manual_seed(number)


def initial_seed() -> int:
    """The seed that the current device's generator was last given."""
    return _generator().initial_seed()


def get_rng_state(device: Device = "npu") -> torch.Tensor:
    """The state of a device's generator, as bytes on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [generator.get_state() for generator in default_generators()]


def set_rng_state(new_state: torch.Tensor, device: Device = "npu") -> None:
    """Puts a device's generator into a state that get_rng_state gave."""
    _generator(device).set_state(new_state.cpu())


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Puts all devices' generators into the given states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
