"""The page of ``attop fit --page``: curves, scores and thresholds of the samples held out."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from attop import __version__
from attop.cli._assessment import TELLS_NOTHING
from attop.cli._training import certificate
from attop.experiments.page import html_figure, html_page, html_table

if TYPE_CHECKING:
    from attop.cli._assessment import Assessment
    from attop.cli._samples import Samples
    from attop.cli._training import Trained


#: Confidence of the bands of the ROC curve.
_CONFIDENCE = 0.95


def fit_page(
    file: str, description: str, samples: Samples, trained: Trained, assessment: Assessment
) -> str:
    """The page: nothing in it refers to anything outside.

    Parameters
    ----------
    file, description : str
        Name of the file of the samples, and a line about it.
    samples : Samples
        All samples.
    trained : Trained
        The model that has not seen those held out.
    assessment : Assessment
        How it does on them.
    """
    name = type(trained.classifier).__name__
    rows, caption = assessment.rows().items(), "Samples that the model has not seen"
    sections = {"On samples held out": html_table(("", "value"), rows, caption, "facts")}
    if assessment.tells_nothing:
        sections["On samples held out"] += f"<p>{TELLS_NOTHING}</p>"
    else:
        roc, scores = _roc(assessment, name), _distributions(assessment)
        note = (
            '<p class="note">The curve shows the samples held out. The shaded band is about new '
            "ones: for each rate of false positives there is a threshold that keeps it, and whose "
            "true positive rate is in the band; each of the two holds with a confidence of "
            f"{_CONFIDENCE:g}.</p>"
        )
        sections["ROC near the top"] = note + html_figure(roc, "roc-", "ROC near the top")
        sections["Scores"] = html_figure(scores, "scores-", "Distributions of the scores")
        sections["Thresholds"] = _thresholds(assessment)
    if trained.search is not None:
        from attop.cli._search import candidates

        best = candidates(trained.search)
        caption = f"The best of {len(trained.search.cv_results_['params'])}, by cross-validation"
        cells = [list(row.values()) for row in best]
        sections["Search"] = html_table(list(best[0]), cells, caption, "facts")
    sections["Model"] = _model(samples, trained)
    title = f"{name} on {file}"
    return html_page(title, f"attop {__version__}. {html.escape(description)}", sections)


def _roc(assessment: Assessment, name: str) -> Any:
    from attop.plotting import TopROCDisplay

    positive = assessment.positive.astype(int)
    display = TopROCDisplay.from_predictions(
        positive,
        assessment.scores,
        threshold=0.0,
        name=name,
        sample_weight=assessment.weight,
        bands=_CONFIDENCE,
    )
    return display.figure_


def _distributions(assessment: Assessment) -> Any:
    from attop.plotting import ScoreDistributionDisplay

    positive = assessment.positive.astype(int)
    display = ScoreDistributionDisplay.from_predictions(
        positive, assessment.scores, threshold=0.0, sample_weight=assessment.weight
    )
    return display.figure_


def _thresholds(assessment: Assessment) -> str:
    rows = assessment.thresholds()
    note = (
        '<p class="note">A sample is called positive from a score of 0 on. To call others '
        "positive, compare the scores of <code>attop predict</code> with another number. Those "
        "here are of the model that has not seen the samples held out; those of the model made of "
        "all samples differ a little. For new samples these rates are estimates; "
        "<code>--guarantee</code> sets a threshold whose rate is kept with confidence.</p>"
    )
    caption = "What other thresholds give on the samples held out"
    return note + html_table(list(rows[0]), [list(row.values()) for row in rows], caption, "facts")


def _model(samples: Samples, trained: Trained) -> str:
    from attop.cli.fit import guarantee_line

    classifier = trained.classifier
    lines = [f"{type(classifier).__name__}{certificate(classifier)}", *samples.notes]
    if hasattr(trained.model, "violation_bound_"):
        lines.insert(1, guarantee_line(trained.model))
    text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    parameters = [(key, str(value)) for key, value in classifier.get_params(deep=False).items()]
    return text + html_table(("parameter", "value"), parameters, "Parameters", "facts")
