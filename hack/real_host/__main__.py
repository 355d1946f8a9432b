"""`python -m hack.real_host`: list the parts of the tier `host`, and those that this machine lacks."""

from __future__ import annotations

from hack.real_host import parts


def main() -> None:
    """Print a line for each part."""
    machine = parts.this_machine()
    for name in parts.PARTS:
        print(f"real-host: {name}: {parts.missing(machine, name) or 'found'}")


if __name__ == "__main__":
    main()
