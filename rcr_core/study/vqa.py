"""VQA accuracy: how many of the people who were asked gave the answer, after the usual normalisation.

Agrawal et al., "VQA: Visual Question Answering" (2015), section 5, as the leave-one-out mean that the
benchmarks compute. The normalisation is the one of TextVQA's evaluation, which treats every answer alike; the
older one of VQA itself leaves answers as they are where all people agree, and keeps commas and "'s" longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

ENOUGH = 3  # people

_ARTICLES = frozenset(("a", "an", "the"))
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(number) for number, word in enumerate(_DIGITS)} | {"none": "0"}
# None with "'s": that is a word of its own by the time they are looked up.
_SHORT_FORMS = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd
    he'd've how'd how'll isn't it'd it'd've it'll ma'am might've mightn't mightn't've must've mustn't needn't
    not've o'clock oughtn't shan't she'd've should've shouldn't shouldn't've somebody'd somebody'd've
    somebody'll someone'd someone'd've someone'll something'd something'd've something'll there'd there'd've
    there're they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're
    what've where'd where've who'd who'd've who'll who've why'll why're won't would've wouldn't wouldn't've
    y'all y'all'd've y'all'll you'd you'd've you'll you're you've
"""
_PUNCTUATION = ';/[]"{}()=+\\_-><@`!'
_FULL_STOP = re.compile(r"\.(?!\d)")


def vqa_accuracy(answer: str, given: Sequence[str]) -> float:
    """Accuracy in [0, 1] of an answer against those that people gave (ten, as a rule).

    The mean over the people, each left out once, of min(1, matches among the others / 3). Where there are no
    more than `ENOUGH` answers, it is whether any of them is the same.
    """
    said = normalised(answer)
    people = [normalised(one) for one in given]
    if len(people) <= ENOUGH:
        return float(said in people)
    matches = people.count(said)
    scores = [min(1.0, (matches - (one == said)) / ENOUGH) for one in people]
    return sum(scores) / len(scores)


def normalised(answer: str) -> str:
    """An answer in lower case, without punctuation and articles, numbers up to ten as digits."""
    whole = answer.lower().replace(",", "").replace("?", "").replace("'s", " 's")
    whole = text = " ".join(whole.split())
    for mark in _PUNCTUATION:
        at_an_end = f"{mark} " in whole or f" {mark}" in whole
        text = text.replace(mark, "" if at_an_end else " ")
    words = (_NUMBERS.get(word, word) for word in _FULL_STOP.sub("", text).split())
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)


def _misspelt(form: str) -> Iterator[str]:
    """A short form with one of its apostrophes left out."""
    for index, letter in enumerate(form):
        if letter == "'":
            yield form[:index] + form[index + 1 :]


_CONTRACTIONS = {wrong: form for form in _SHORT_FORMS.split() for wrong in _misspelt(form)}
