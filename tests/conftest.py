"""Says after all tests how much of the code of the pages was run (tests/docs/test_code.py)."""

from collections import Counter

MARK = "code of pages "


def pytest_terminal_summary(terminalreporter):
    """Add up what the tests of the pages recorded, also those that other processes ran."""
    counts = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if getattr(report, "when", "") == "call":
            for name, number in report.user_properties:
                if name.startswith(MARK):
                    counts[name.removeprefix(MARK)] += number
    if counts:
        found = ", ".join(f"{number} {name}" for name, number in counts.items())
        terminalreporter.write_line(f"code of the pages: {found}")
