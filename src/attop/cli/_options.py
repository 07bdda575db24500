"""The options of ``attop fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_COLUMNS, _MODEL, _SEARCH, _OUTPUT = "Columns", "Model", "Search and threshold", "Output"


Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, libsvm or npz file.")]
Target = Annotated[str | None, typer.Option(help="Column of the labels.", rich_help_panel=_COLUMNS)]
Positive = Annotated[
    str | None,
    typer.Option(help="Label of the positive class; 1 by default.", rich_help_panel=_COLUMNS),
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Column that names a sample: no feature.", rich_help_panel=_COLUMNS),
]
Weight = Annotated[
    str | None,
    typer.Option(help="Column of the weights of the samples.", rich_help_panel=_COLUMNS),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column that is no feature; may be repeated.", rich_help_panel=_COLUMNS),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="Column whose numbers are only names of categories; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Word that stands for a missing value, such as '?'; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Method = Annotated[
    str, typer.Option(help="Such as patmat-np, tau-fpl or top-push.", rich_help_panel=_MODEL)
]
Tau = Annotated[float | None, typer.Option(help="Share tau of the method.", rich_help_panel=_MODEL)]
NumberK = Annotated[
    int | None, typer.Option("--K", help="Number K of TopPushK.", rich_help_panel=_MODEL)
]
Theta = Annotated[float | None, typer.Option(help="Scale theta of PatMat.", rich_help_panel=_MODEL)]
WeightC = Annotated[
    float | None,
    typer.Option("--C", help="Weight of the loss; 1 by default.", rich_help_panel=_MODEL),
]
Kernel = Annotated[
    str | None, typer.Option(help="The kernel; rbf by default.", rich_help_panel=_MODEL)
]
Gamma = Annotated[
    str | None,
    typer.Option(
        help="Scale of the kernel: a number, scale or auto; scale by default.",
        rich_help_panel=_MODEL,
    ),
]
Surrogate = Annotated[
    str | None,
    typer.Option(help="Loss: hinge or quadratic_hinge; hinge by default.", rich_help_panel=_MODEL),
]
Approximation = Annotated[
    str | None,
    typer.Option(
        help="Approximate the kernel by features: nystroem or rbf_sampler.", rich_help_panel=_MODEL
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        help="Features of the approximation; 100 by default.", min=1, rich_help_panel=_MODEL
    ),
]
Tol = Annotated[
    float | None,
    typer.Option(
        help="Relative duality gap to be certified; 1e-4 by default.", rich_help_panel=_MODEL
    ),
]
MaxTime = Annotated[
    float | None, typer.Option(help="Most seconds of one fit.", rich_help_panel=_MODEL)
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where kernels are computed: cpu, cuda or the like of cuda:1; cpu by default.",
        rich_help_panel=_MODEL,
    ),
]
Search = Annotated[
    bool,
    typer.Option(
        "--search",
        help="Choose C, gamma and tau or K by cross-validation; those given as options stay.",
        rich_help_panel=_SEARCH,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Metric of the search, such as tpr_at_fpr_0.01 or precision_at_k_100; "
        "by default the one that the method is made for.",
        rich_help_panel=_SEARCH,
    ),
]
Guarantee = Annotated[
    str | None,
    typer.Option(
        metavar="fpr=RATE",
        help="Set the threshold so that the false positive rate on new data stays below RATE.",
        rich_help_panel=_SEARCH,
    ),
]
Confidence = Annotated[
    float,
    typer.Option(help="Probability with which the guarantee holds.", rich_help_panel=_SEARCH),
]
HeldOut = Annotated[
    float,
    typer.Option(help="Share held out for the report.", min=0.01, max=0.9, rich_help_panel=_OUTPUT),
]
Refit = Annotated[
    bool,
    typer.Option(
        help="Save a model of all samples, or the one that the report is about.",
        rich_help_panel=_OUTPUT,
    ),
]
Save = Annotated[Path, typer.Option(help="File of the model.", rich_help_panel=_OUTPUT)]
Page = Annotated[
    Path | None,
    typer.Option(
        help="HTML file to write: ROC near the top, scores, thresholds.", rich_help_panel=_OUTPUT
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed of the draws.", min=0, max=2**32 - 1, rich_help_panel=_OUTPUT)
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Show the progress of the solver.", rich_help_panel=_OUTPUT),
]
Pickle = Annotated[
    bool,
    typer.Option(
        "--pickle",
        help="Save a pickle, which runs code when it is opened, instead of a safe file.",
        rich_help_panel=_OUTPUT,
    ),
]
Dask = Annotated[
    bool,
    typer.Option(
        "--dask",
        help="Fit a Parquet file that is larger than the memory, block by block: linear models "
        "and approximations.",
    ),
]
