"""The paper's method, literal: linear affine adjustment, Haralick's covariance, one question at a time."""
