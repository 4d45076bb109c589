"""How the fakes walk page lists, wrong ones included."""

from __future__ import annotations

import torch
from fake_kernels.paged import LONGEST_WALK, as_read, device_lengths, host_lengths, token_slots
from paged_batches import i32


def test_lengths_on_the_device_and_on_the_host_differ_for_a_request_without_pages() -> None:
    indptr, last = [0, 2, 2, 3], [1, 3, 4]
    assert device_lengths(indptr, last, 4) == [5, 0, 4]
    assert host_lengths(indptr, last, 4) == [5, 3, 4]
    assert device_lengths([0, 0], [9], 4) == [0]


def test_lengths_of_wrong_metadata_are_never_negative() -> None:
    assert device_lengths([0, 3, 1], [4, 4], 4) == [12, 0]


def test_slots_follow_the_page_list_in_order() -> None:
    assert token_slots(1, 6, i32([9, 2, 0]), 4, 3).tolist() == [8, 9, 10, 11, 0, 1]
    assert token_slots(0, 2, i32([2, 1]), 1, 3).tolist() == [2, 1]
    assert token_slots(0, 0, i32([]), 4, 3).tolist() == []


def test_slots_stay_inside_the_pool() -> None:
    """Unknown pages wrap around, and past the end of the list stands page 0."""
    assert token_slots(0, 4, i32([-1, 7]), 2, 3).tolist() == [4, 5, 2, 3]
    assert token_slots(1, 5, i32([2, 1]), 2, 3).tolist() == [2, 3, 0, 1, 0]
    assert token_slots(0, 1 << 30, i32([1]), 1, 3).numel() == LONGEST_WALK


def test_eight_byte_entries_are_read_in_halves_and_strides_are_not_seen() -> None:
    assert as_read(torch.tensor([5, -1, 7]), 4).tolist() == [5, 0, -1, -1]
    assert as_read(torch.tensor([5, 6, 7]), 3).tolist() == [5, 0, 6]
    table = torch.arange(6, dtype=torch.int32).view(3, 2)
    assert as_read(table[:, 1], 3).tolist() == [1, 2, 3]
    assert as_read(table[2:, 1], 3).tolist() == [5]
