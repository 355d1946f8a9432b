"""`python -m hack.real_host`: list the parts of the tier `host`, and those that this machine lacks."""

from __future__ import annotations

from hack.real_host import parts


def main() -> None:
    """Print a line for each part."""
    for line in parts.report(parts.this_machine()):
        print(f"real-host: {line}")


if __name__ == "__main__":
    main()
