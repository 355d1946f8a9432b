"""What the provisioning says while it works."""

from __future__ import annotations

from hack.control_plane.progress import Progress


class Screen:
    """Where the lines go, and a clock."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.time = 1000.0
        self.progress = Progress(write=self.lines.append, monotonic=lambda: self.time)


class TestProgress:
    def test_a_step_tells_its_number_and_the_time_since_the_start(self) -> None:
        screen = Screen()
        screen.progress.total = 2
        screen.progress.step("building etcd")
        screen.time += 75
        screen.progress.step("building kubectl")
        assert screen.lines == ["[0:00] 1 of 2: building etcd", "[1:15] 2 of 2: building kubectl"]

    def test_half_a_minute_of_silence_is_broken(self) -> None:
        screen = Screen()
        screen.progress.step("building etcd")
        for _ in range(65):
            screen.time += 1
            screen.progress.beat()
        assert screen.lines[1:] == ["[0:30] still at building etcd", "[1:00] still at building etcd"]

    def test_a_short_step_is_quiet(self) -> None:
        screen = Screen()
        screen.progress.step("building etcd")
        screen.time += 29
        screen.progress.beat()
        assert len(screen.lines) == 1
