"""Arguments of commands with few queries, for the tests of the command line."""

FEW = ("--queries", "300", "-k", "3")


def explain(model="scorer:score", *more, data="train.csv"):
    """Return the arguments of ``anchorline explain`` with few queries."""
    return ("explain", model, f"--data={data}", "--target", "approved", *FEW, *more)
