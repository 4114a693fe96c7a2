"""Trains a model on labelled payments, with the features that the filter will compute for it."""
