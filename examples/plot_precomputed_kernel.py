"""
A precomputed kernel: samples that are no vectors
=================================================

Texts, graphs or molecules have no features, but they can be compared. All that the classifiers
need is the matrix of the similarities. Here the samples are sequences of four letters, and some
hold a motif.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from attop import TauFPL
from attop.metrics import tpr_at_fpr
from attop.plotting import ScoreDistributionDisplay

N_SEQUENCES = 1000
LENGTH = 60
MOTIF = "TGACGTCA"

# %%
# Sequences
# ---------
# One in ten holds the motif, with one letter in eight changed.

rng = np.random.default_rng(0)
letters = np.array(list("ACGT"))


def random_sequence(with_motif):
    """A random sequence, maybe with a worn motif somewhere in it."""
    sequence = rng.choice(letters, size=LENGTH)
    if with_motif:
        start = rng.integers(LENGTH - len(MOTIF))
        worn = rng.random(len(MOTIF)) < 1 / 8
        sequence[start : start + len(MOTIF)] = np.where(
            worn, rng.choice(letters, size=len(MOTIF)), list(MOTIF)
        )
    return "".join(sequence)


y = (rng.random(N_SEQUENCES) < 0.1).astype(int)
sequences = [random_sequence(label) for label in y]

# %%
# The kernel matrix
# -----------------
# Two sequences are alike if the same runs of three to five letters occur in both.

runs = CountVectorizer(analyzer="char", ngram_range=(3, 5), lowercase=False, binary=True)
K = cosine_similarity(runs.fit_transform(sequences))

# %%
# Fit and predict
# ---------------
# `fit` takes the kernel of the training samples with themselves; `decision_function` that of the
# new samples, one row each, with the training samples.

train, test = np.arange(N_SEQUENCES // 2), np.arange(N_SEQUENCES // 2, N_SEQUENCES)
model = TauFPL(tau=0.05, kernel="precomputed", C=10.0).fit(K[np.ix_(train, train)], y[train])
new = K[np.ix_(test, train)]
found = tpr_at_fpr(y[test], model.decision_function(new), 0.05)
print(f"certified gap {model.dual_gap_:.0e}; {found:.0%} of the motifs found at FPR 5 %")
ScoreDistributionDisplay.from_estimator(model, new, y[test], bins=30, name="sequences")
plt.show()
