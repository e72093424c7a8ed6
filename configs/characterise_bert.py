"""Where does the time of a training step of BERT large go?

examples:
  # one short step, in half a minute
  python configs/characterise_bert.py batch=1,seq=128
  # a step of the second phase of pre-training, in minutes; the first has batch=32,seq=128
  python configs/characterise_bert.py batch=4,seq=512
"""

from pysim.cli.entry import run_script

CASES = ("batch=4,seq=128,dtype=fp16", "batch=1,seq=512,dtype=fp16", "batch=4,seq=128,dtype=fp32")
SIMULATED = 3


def options_of():
    """Read the command line."""
    from pysim.cli.options import SINGLE_RUN, make_parser, natural_int
    from pysim.cli.script import Script

    parser = make_parser(
        __doc__,
        {"gpu": "h200"},
        (*SINGLE_RUN, "schemes", "replay"),
        "the script simulates steps in stream order and writes the tables bert_breakdown and runs",
    )
    text = (
        "batch=N,seq=N,dtype=TYPE (default: 4, 128, fp16): fp32; fp16 or bf16, weights and gradients of 16"
        f" bits, LAMB's masters in fp32; amp or amp-bf16, autocast (default: {' '.join(CASES)})"
    )
    parser.add_argument("cases", metavar="CASE", nargs="*", default=[*CASES], help=text)
    text = f"layers that are simulated and stand for all 24; 0: all (default: {SIMULATED})"
    parser.add_argument("--simulated", type=natural_int, default=SIMULATED, metavar="N", help=text)
    args = parser.parse_args()
    return Script.start("characterise_bert", parser, args, ("cases", "simulated"))


def main():
    # imported inside main, so that Ctrl-C during an import also ends in one line
    script = options_of()

    # slow imports: only after the options are checked
    from pysim import stats
    from pysim.cli.entry import reading_input
    from pysim.cli.many_runs import begin, simulate_in_order
    from pysim.stats.studies import bert as text
    from pysim.stats.studies.bert_picture import draw_bert
    from pysim.stats.studies.hardware import plain
    from pysim.workloads.kernels.machine_hints import MachineHints
    from pysim.workloads.studies import bert_step as study

    chosen = script.workload
    log, show = begin(script, stats)
    hints = MachineHints.of(script.config)
    with reading_input():
        cases = study.cases_of(chosen["cases"])
        steps = [study.bert_step(case, hints, chosen["simulated"]) for case in cases]
    show(script.machine_lines()[0])
    held = chosen["simulated"] or study.NETWORK.layers
    show(f"workload  training steps of {study.NAME}, {held} of {study.NETWORK.layers} layers simulated,")
    show("          attention by products, LAMB, stream order")
    show("types     fp16, bf16: weights and gradients too, LAMB's masters fp32; amp: autocast")
    show("heads     over all tokens; NVIDIA's BERT takes the masked ones alone\n")
    rows = []
    for number, step in enumerate(steps):
        run, listed = simulate_in_order(script, step.job, ("kernels",), log)
        found = study.breakdown_rows(step, listed["kernels"])
        made = [row | {"run": number} for row in found]
        log.clear()
        part = stats.schema.from_rows("bert_breakdown", made)
        show(plain(text.breakdown(part, float(run["replay_error"]))) + "\n")
        rows += made
    table = stats.schema.from_rows("bert_breakdown", rows)
    title = 'published of an MI100 ("Demystifying BERT", arXiv 2104.08335), no target: another GPU and batch'
    show(plain(text.published(table, title)) + "\n")
    show("second-hand: from a digest of the paper; recalled: from no text at hand, as are sizes there:")
    show("32 x 128 and 4 x 512 tokens. LAMB takes as long for any number: few tokens give it a large share")
    show("FLOP: of products alone; MB: what loads ask from L2 and stores send there\n")
    tables = {"bert_breakdown": table, "runs": script.finished_runs()}
    title = f"Training step of BERT large on {script.config.device.title}"
    script.save(stats, tables, show, lambda: draw_bert(table, title))


if __name__ == "__main__":
    run_script(main)
