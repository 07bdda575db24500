"""
Images: the eights at the top
=============================

Which of the images of handwritten digits are surely an eight? The images with the highest scores
are shown, and the others that come closest to them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from attop import TopPushK
from attop.metrics import positives_at_top, tpr_at_k

DIGIT = 8

# %%
# Scikit-learn's digits are images of 8 x 8 pixels with values from 0 to 16.

digits = load_digits()
X, y = digits.data / 16.0, (digits.target == DIGIT).astype(int)
X_train, X_test, y_train, y_test, _, shown_digit = train_test_split(
    X, y, digits.target, test_size=0.5, stratify=digits.target, random_state=0
)

# %%
# With ``K=5`` the threshold is the mean of the five highest scores of other digits, so that a
# single badly written digit does not decide.

model = TopPushK(K=5, C=1.0, kernel="rbf", gamma=0.02).fit(X_train, y_train)
scores = model.decision_function(X_test)
print(f"certified gap {model.dual_gap_:.0e}: {model.status_}")
print(f"{positives_at_top(y_test, scores):.1%} of the eights are above every other digit,")
print(f"{tpr_at_k(y_test, scores, 5):.1%} above the mean of the five highest other digits")

# %%
# The eights the model is surest of, the other digits with the highest scores, and the eights with
# the lowest ones.

order = np.argsort(-scores, kind="stable")
is_eight = y_test[order] == 1
rows = {
    "surest eights": order[is_eight][:8],
    "highest others": order[~is_eight][:8],
    "lowest eights": order[is_eight][::-1][:8],
}
figure, axes = plt.subplots(len(rows), 8, figsize=(9, 4.4), layout="constrained")
for line, (title, samples) in zip(axes, rows.items()):
    line[0].set_ylabel(title)
    for ax, sample in zip(line, samples):
        ax.imshow(X_test[sample].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[], title=f"{scores[sample]:+.2f}")
        ax.set_xlabel(f"is {shown_digit[sample]}", fontsize="small")
plt.show()
