"""Which tools fit a text best: by their words, by what they are about, and by their vectors."""

from annabelle.toolbox.ranking.ranker import RankedTool, ToolRanker, ToolRanking

__all__ = ["RankedTool", "ToolRanker", "ToolRanking"]
