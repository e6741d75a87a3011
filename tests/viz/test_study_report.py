"""The report of a study holds everything, asks for nothing, and takes no text for markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rcr_core.errors import StudyError
from rcr_core.findings import Column, Interval, Table, evidence_of
from rcr_core.findings.overview import sections
from tests.app.browser import conftest as browser
from tests.viz.study_samples import made_rows
from viz.study.figures import STUDY_FIGURES
from viz.study.markup import table_html
from viz.study.report import report_html, write_report
from viz.study.summary import summary_html
from viz.study.texts import chosen, parted

chromium = browser.chromium  # the browser that the page's own tests drive

COMMAND = "python -m rcr_core study --data SCENES:12 --policies all --out results"
HOSTILE = '</script></style><script>window.taken = 1</script><img src=x onerror="window.taken = 1">\'&amp;'


class Elements(HTMLParser):
    """The elements of a file, its texts outside scripts and styles, and the addresses that it names."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag
        for name, value in attrs:
            if name in ("src", "href"):
                self.addresses.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text.append(data)


@pytest.fixture(scope="module")
def rows():
    return made_rows(12)


@pytest.fixture(scope="module")
def html(rows) -> str:
    return report_html(rows, COMMAND, "A study of twelve", ["rcr of scene-099: no memory is left"])


@pytest.fixture(scope="module")
def elements(html) -> Elements:
    return Elements(html)


def test_it_holds_every_table_every_figure_and_how_it_was_made(html, elements, rows):
    text = " ".join(elements.text)
    for section in sections(rows):
        for table in section.tables:
            assert table.title in text
            assert table.note.split(".")[0] in text.replace("\xa0", " ")
    plots = [name for name in elements.ids if name.startswith("figure-")]
    assert sorted(name.split("-", 2)[2] for name in plots) == sorted(STUDY_FIGURES)
    for fact in (
        COMMAND,
        "bundled-captioner, float32",
        "torch 2.13.0",
        "Describe this image in detail.",
        "tau0 0.03",
    ):
        assert fact in text
    assert "rcr of scene-099: no memory is left" in text
    assert "A study of twelve" in text


def test_all_links_lead_to_a_place_in_the_file(elements):
    links = [address for address in elements.addresses if address.startswith("#")]
    assert links and links == elements.addresses
    assert {link[1:] for link in links} <= set(elements.ids)
    assert len(elements.ids) == len(set(elements.ids))


def test_the_summary_tells_the_best_and_what_rcr_gains(rows):
    (evidence,) = evidence_of(rows)
    told = re.sub(r"<[^>]+>", "", summary_html(evidence)).replace("&minus;", "−")
    mean = {
        policy: sum(row.fidelity for row in evidence.of(policy).values()) / 12
        for policy in evidence.policies
        if policy != "full"
    }
    best = max(mean, key=mean.get)
    assert best == "exact"
    assert told.startswith("Over 12 images, Exact re-selection stays nearest")
    assert f"fidelity {mean['exact']:.3f}".replace("0.", ".") in told
    assert "at 456 vectors read" in told
    gain = f"{mean['rcr'] - mean['bacon']:.3f}"[1:]
    assert re.search(rf"RCR is {gain} \[\.\d+, \.\d+\] above BACON", told)
    rate = sum(row.refresh_rate for row in evidence.of("rcr").values()) / 12
    assert f"RCR re-selects in {rate:.0%}".replace("%", "&nbsp;%") in told
    assert "oracle" not in told.lower()


def scored(images: int = 12, **fidelities) -> str:
    """The summary of policies, each with its fidelities over and over; without markup."""
    rows = [
        replace(row, fidelity=fidelities[row.policy][int(row.sample[-3:]) % len(fidelities[row.policy])])
        for row in made_rows(images, sweeps=False)
        if row.policy in fidelities
    ]
    (evidence,) = evidence_of(rows)
    return re.sub(r"<[^>]+>", "", summary_html(evidence))


def test_the_summary_names_no_winner_among_ties():
    told = scored(bacon=[1.0], exact=[1.0], quest=[0.9996], rcr=[0.4])
    assert told.startswith(
        "Over 12 images, BACON, Exact re-selection and Quest come to the same fidelity: 1.000."
    )
    assert "nearest" not in told
    everywhere = scored(bacon=[1.0], rcr=[1.0])
    assert "BACON and RCR come to the same fidelity" in everywhere
    assert "above BACON" not in everywhere and "difference" not in everywhere
    unclear = scored(exact=[0.9, 0.7], infinigen=[0.7, 0.89], rcr=[0.2])
    assert "no policy is clearly the nearest to the uncompressed run: Exact re-selection" in unclear
    assert "InfiniGen to .795" in unclear
    clear = scored(exact=[0.9, 0.7], infinigen=[0.89, 0.69], rcr=[0.2])
    assert "Exact re-selection stays nearest" in clear
    one = scored(1, exact=[0.9], infinigen=[0.8])
    assert one.startswith("Over 1 image, no policy is clearly the nearest")


def test_the_oracle_is_no_rival_in_the_summary():
    told = scored(oracle=[0.99], bacon=[0.5], rcr=[0.8])
    assert told.startswith("Over 12 images, RCR stays nearest")
    assert "No other policy that reads as little or less comes as near." in told
    assert "oracle" not in told.lower()
    assert scored(oracle=[0.99]) == ""


def test_what_is_nearer_at_no_more_reads_is_told_by_its_pairs():
    told = scored(bacon=[0.5], rcr=[0.6, 0.8], quest=[0.7, 0.9], infinigen=[0.9, 0.51])
    assert "Nearer at no more reads: Quest (.800 at 64 reads)." in told
    assert "without a clear difference: InfiniGen (.705 at 64 reads)." in told


def test_the_summary_is_over_common_images_or_says_that_it_is_not():
    rows = made_rows(12, sweeps=False)
    (evidence,) = evidence_of([row for row in rows if row.policy != "rcr" or row.sample != "scene-003"])
    assert "Over 11 images" in summary_html(evidence)
    (few,) = evidence_of(
        [row for row in made_rows(4, False) if row.policy != "rcr" or row.sample != "scene-003"]
    )
    assert "Not all policies have run on the same images yet." in summary_html(few)
    assert "Not all" not in summary_html(evidence)


def test_answers_that_the_prefill_chose_are_told_as_such():
    rows = [replace(row, tokens=[1, 99], fidelity=1.0) for row in made_rows(12, sweeps=False)]
    (evidence,) = evidence_of(rows)
    assert "only 1 token of an output (mean) came after the selection" in summary_html(evidence)


def test_the_summary_claims_no_difference_that_the_images_do_not_show(rows):
    same = [
        replace(row, fidelity=0.5 + 0.01 * (at % (3 if row.policy == "rcr" else 4)))
        for at, row in enumerate(rows)
        if row.policy in ("rcr", "bacon")
    ]
    (evidence,) = evidence_of([row for row in same if row.settings["select"] == 32])
    assert "no clear difference to BACON" in summary_html(evidence)
    worse = [replace(row, fidelity=0.2 if row.policy == "rcr" else 0.6) for row in same]
    (evidence,) = evidence_of(worse)
    assert ".400 [.400, .400] below BACON" in summary_html(evidence)
    assert summary_html(evidence_of([row for row in rows if row.policy == "full"])[0]) == ""


def test_the_best_value_of_a_column_is_bold_and_intervals_are_quieter():
    table = Table(
        "t",
        "t",
        (
            Column("policy", "policy", "text"),
            Column("fidelity", "fidelity", "score"),
            Column("reads", "reads", "number"),
        ),
        (("full", 1.0, 3.0), ("rcr", Interval(0.7, 0.6, 0.8, 9), 2.0), ("bacon", 0.4, None)),
    )
    html = table_html(table)
    assert html.count("best") == 1
    assert (
        '<td class="num best"><span class="mean">.700</span> <span class="ends">[.600, .800]</span></td>'
        in html
    )
    assert '<td class="num none">–</td>' in html
    assert '<tr class="loud"><td class="text policy" style="--policy: #0072b2">RCR</td>' in html


def test_texts_part_at_the_first_other_word():
    parts = parted("a red cube left of a cone", "a red cube right of a cone")
    assert (parts.shared, parts.first, parts.rest) == ("a red cube ", "left ", "of a cone")
    same = parted("a b", "a b")
    assert (same.shared, same.first, same.rest) == ("a b", "", "")
    assert parted("a", "a b").first == ""
    assert parted("", "a b").shared == ""


def test_three_texts_are_the_nearest_the_middle_and_the_furthest(rows, html):
    (evidence,) = evidence_of(rows)
    rcr = evidence.of("rcr")
    order = sorted(rcr, key=lambda sample: rcr[sample].fidelity)
    assert [sample for sample, _ in chosen(evidence)] == [order[-1], order[5], order[0]]
    assert html.count('<article class="sample">') == 3
    assert html.count("<mark>") == 6


def test_files_lie_beside_the_report(rows, tmp_path):
    paths = write_report(rows, tmp_path / "results", COMMAND)
    assert paths[0] == tmp_path / "results" / "report.html"
    assert all(path.stat().st_size for path in paths)
    names = {table.id for section in sections(rows) for table in section.tables}
    for suffix in ("csv", "tex"):
        assert {path.stem for path in paths if path.suffix == f".{suffix}"} == names
    assert paths[0].read_text() == report_html(rows, COMMAND)


def test_tables_of_several_data_sets_keep_apart(tmp_path):
    several = [
        *made_rows(4, sweeps=False),
        *made_rows(3, sweeps=False, data="../étude"),
        *made_rows(3, False, "画"),
    ]
    paths = write_report(several, tmp_path, COMMAND)
    assert len(paths) == len(set(paths))
    assert all(path.parent in (tmp_path, tmp_path / "tables") for path in paths)
    fidelity = [path for path in paths if path.name.startswith("fidelity-") and path.suffix == ".csv"]
    assert len(fidelity) == 3
    labels = [re.search(r"\\label\{(.*?)\}", path.read_text())[1] for path in paths if path.suffix == ".tex"]
    assert len(labels) == len(set(labels))


def test_a_folder_that_cannot_be_written_is_told(rows, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot be written"):
        write_report(rows, tmp_path / "file", COMMAND)


@pytest.fixture(scope="module")
def hostile(rows) -> str:
    names = {
        "prompt": HOSTILE,
        "model": HOSTILE,
        "data": HOSTILE,
        "device": HOSTILE,
        "versions": {HOSTILE: HOSTILE},
    }
    made = [
        replace(row, sample=row.sample + HOSTILE, text=f"{HOSTILE} {row.text}", **names)
        for row in rows
        if row.settings["select"] == 32
    ]
    return report_html(made, HOSTILE, HOSTILE, [HOSTILE])


def test_hostile_texts_stay_texts(hostile, elements):
    found = Elements(hostile)
    assert found.tags.count("script") == elements.tags.count("script") == 3
    assert "img" not in found.tags
    assert "".join(found.text).count("window.taken = 1") > 20
    assert set(found.addresses) == {address for address in found.addresses if address.startswith("#")}


class Opened:
    """A report in a browser, with what it asked for and what went wrong."""

    def __init__(self, chromium, path, **options):
        self.context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.goto(path.as_uri())
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.plot')].every((one) => one.querySelector('.main-svg'))"
        )


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_it_opens_from_a_disk_and_asks_for_nothing(chromium, kind, html, hostile, tmp_path):
    path = tmp_path / "report.html"
    text = {"plain": html, "hostile": hostile}[kind]
    path.write_text(text, encoding="utf-8")
    opened = Opened(chromium, path)
    assert opened.requests == [path.as_uri()]
    assert opened.errors == []
    assert opened.page.evaluate("window.taken") is None
    drawn = opened.page.locator(".plot .main-svg:first-child").count()
    assert drawn == text.count('<div class="plot"') >= 7
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_it_fits_the_window_in_the_colours_of_the_reader(chromium, scheme, width, html, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    opened = Opened(chromium, path, color_scheme=scheme)
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(
        "(width) => [...document.querySelectorAll('.plot .main-svg')]"
        ".every((one) => one.getBoundingClientRect().right <= width)",
        arg=width,
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ground, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    drawn = page.evaluate(
        "[...document.querySelectorAll('.plot .xtitle')].map((one) => getComputedStyle(one).fill)"
    )
    assert set(drawn) == {text}
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    opened.context.close()


def test_no_label_of_a_figure_lies_over_another_one(chromium, html, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    opened = Opened(chromium, path)
    opened.page.set_viewport_size({"width": 420, "height": 900})
    opened.page.wait_for_timeout(500)
    boxes = opened.page.evaluate(
        """
        () => Object.fromEntries(["pareto", "budgets", "thresholds"].map((name) => [name,
          [...document.querySelectorAll(`[id$="-${name}"] .annotation-text`)].map((one) => {
            const { left, right, top, bottom } = one.getBoundingClientRect();
            return [one.textContent, left, right, top, bottom];
          })]))
        """
    )
    assert len(boxes["pareto"]) == 11 and len(boxes["budgets"]) == 9
    for found in boxes.values():
        for at, (name, left, right, top, bottom) in enumerate(found):
            for other, to_left, to_right, to_top, to_bottom in found[:at]:
                apart = right <= to_left or to_right <= left or bottom <= to_top + 2 or to_bottom <= top + 2
                assert apart, (name, other)
    opened.context.close()
