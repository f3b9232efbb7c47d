"""Load generators side by side on one engine stand-in: see README.md beside this package."""
