"""The paper's synthetic experiments: worlds with a known truth, metrics, studies, figures."""
