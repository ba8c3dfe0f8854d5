"""Helpers of the older package that test suites import."""
