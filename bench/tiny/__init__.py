"""Statements over tables of a few rows, of which nothing is left but what they cost beforehand."""
