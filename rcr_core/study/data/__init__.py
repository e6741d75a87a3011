"""What a study runs on: samples of an image and a prompt, from drawn scenes, files, or public sets."""

from rcr_core.study.data.catalogue import open_data
from rcr_core.study.data.sample import DataSet, Sample

__all__ = ["DataSet", "Sample", "open_data"]
