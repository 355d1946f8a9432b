"""The simulated cluster: scenario, initial objects, backend, and a program to run it."""
