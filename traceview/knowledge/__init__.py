"""Versioned facts as data: kernel signatures, eligibility, priorities, devices."""
