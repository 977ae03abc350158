"""Tests of the functions: explain, bound, compare, trace, predict, sweep, lists."""
import pathlib
import tempfile
import unittest
import warnings

from support import ROOT, STAR, Case, ring_us, ringsim

A100 = ROOT / "scenarios/examples/library/nccl-two-dgx-a100.json"
MEASURED = ROOT / "validate/measured/tables/sophia-dgxa100-2n8g-all_reduce-gdrpxb.csv"
PROFILES = ROOT / "tests/data/profiles"


class Run(Case):
    def test_a_scenario_is_a_dictionary_a_path_or_a_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "star.json")
            path.write_text(ringsim.call("help", "run"))
            self.assertIn("star.json:1:1", self.refused(ringsim.run, path).where)
        file = ringsim.run(ROOT / "scenarios/star.json", set={"collective.bytes": "1 MiB"})
        self.assertEqual(file.to_jsonl(), ringsim.run(str(ROOT / "scenarios/star.json"), set={"collective.bytes": "1 MiB"}).to_jsonl())
        self.assertEqual(ringsim.run("dgx-h100")[0].ranks, 8)
        self.assertEqual(ringsim.run(STAR)[0]["scenario.name"], "scenario")
        self.assertEqual(ringsim.run({**STAR, "name": "mine"})[0].scenario.name, "mine")

    def test_settings_are_values_of_python(self):
        results = ringsim.run(STAR, set={"topology.ranks": range(2, 5), "collective.bytes": ("1 KiB", "1 MiB"), "transport.pxn": None})
        self.assertEqual(results["ranks"], [2, 2, 3, 3, 4, 4])
        self.assertEqual(results["bytes"], [1024, 1 << 20] * 3)

    def test_options_add_columns(self):
        row = ringsim.run(STAR, explain=True, phases=True, bound=True)[0]
        self.assertEqual(sum(link["count"] for link in row.links), 8)  # four uplinks and four downlinks
        self.assertAlmostEqual(sum(phase.critical_us for phase in row.phases), row.time_us, places=6)
        self.assertAlmostEqual(row.of_bound, row.bound_us / row.time_us)

    def test_a_machine_by_name_takes_nodes_and_a_fabric(self):
        self.assertEqual(ringsim.run("dgx-a100", nodes=2).to_jsonl(),
                         ringsim.call("run", "dgx-a100", "--nodes", "2", "--format", "jsonl"))
        row, = ringsim.run("dgx-a100", nodes=4, fabric="leaf_spine:2", set={"collective.bytes": "16 MiB"})
        self.assertEqual((row.ranks, row.scenario.name), (32, "4 dgx-a100, leaf_spine:2"))
        self.assertIn("gpu", ringsim.explain("dgx-a100", nodes=2).bottleneck.link)
        self.assertEqual(ringsim.bound("dgx-a100", nodes=2).text, ringsim.call("bound", "dgx-a100", "--nodes", "2"))
        measured = [{"collective": "all_reduce", "ranks": 16, "bytes": 1 << 30, "time_us": 10649.0}]
        for found in (ringsim.compare("dgx-a100", measured, nodes=2, fabric="star"),
                      ringsim.compare_explain("dgx-a100", measured, nodes=2, fabric="star").rows):
            self.assertAlmostEqual(found[0].error, 0, places=4)
        job = ringsim.trace_compare("dgx-a100", PROFILES / "resnet50-2xa100.json.gz", nodes=2)
        self.assertIn("\"nodes\": 2", job.notes[0])

    def test_a_list_of_nodes_is_an_error_that_names_sweep(self):
        for call in (lambda: ringsim.run("dgx-a100", nodes=[1, 2]),
                     lambda: ringsim.predict("all_reduce", 1024, "dgx-a100", nodes=[1, 2])):
            with self.assertRaises(ringsim.Error) as caught:
                call()
            self.assertEqual(caught.exception.where, "nodes")
            self.assertIn("found [1, 2]", str(caught.exception))
            self.assertIn("sweep()", caught.exception.hint)

    def test_nodes_and_a_fabric_that_the_command_refuses_are_errors(self):
        error = self.refused(ringsim.run, STAR, nodes=2)
        self.assertEqual((error.exit_code, error.where), (2, "--nodes"))
        for function in (ringsim.run, ringsim.explain, ringsim.bound, ringsim.plan):
            error = self.refused(function, "dgx-a100", nodes=2, fabric={"kind": "star"})
            self.assertEqual((error.where, error.found), ("fabric", "dict"))


class Sweep(Case):
    SOME_FAIL = {"topology.ranks": [4, 6], "collective.algorithm": ["ring", {"name": "swing"}]}

    def test_a_point_that_cannot_be_is_a_row_and_a_warning(self):
        with self.assertWarns(ringsim.RingsimWarning) as caught:
            results = ringsim.sweep(STAR, set=self.SOME_FAIL)
        self.assertIn("1 of 4 results are errors", str(caught.warning))
        self.assertEqual(caught.filename, __file__)
        self.assertEqual(len(results), 4)
        (failed,) = results.failed
        self.assertEqual((failed.error.where, failed.error.message), ("/collective", "swing needs a power-of-two number of ranks, found 6"))
        self.assertEqual(failed.point["topology.ranks"], 6)
        self.assertIn("found 6", str(results))
        self.assertEqual(results["time_us"].count(None), 1)

    def test_the_number_of_machines_varies_with_a_fabric_in_the_settings(self):
        settings = {"topology.nodes": [1, 2, 4],
                    "topology.fabric": {"kind": "star", "link": {"bandwidth": "24 GB/s", "latency": "150 ns"}}}
        results = ringsim.sweep("dgx-a100", set=settings)
        self.assertEqual((results["ranks"], len(results.failed)), ([8, 16, 32], 0))
        self.assertEqual(results[1].time_us, ringsim.run("dgx-a100", nodes=2)[0].time_us)

    def test_workers_change_no_row(self):
        settings = {"topology.ranks": list(range(2, 30))}
        self.assertEqual(ringsim.sweep(STAR, set=settings, workers=1).to_jsonl(), ringsim.sweep(STAR, set=settings, workers=4).to_jsonl())

    def test_a_condition_that_does_not_hold_is_an_error_with_the_rows(self):
        limit = ring_us(4, 64 * 1024)  # 21.83 us; eight ranks take longer
        settings = {"topology.ranks": [4, 8]}
        self.assertEqual(len(ringsim.sweep(STAR, set=settings, require="time_us > 1")), 2)
        error = self.refused(ringsim.sweep, STAR, set=settings, require=["time_us > 1", f"time_us < {limit + 1}"])
        self.assertEqual(error.exit_code, 1)
        self.assertIn("topology.ranks 8", error.message)
        self.assertNotIn("topology.ranks 4", error.message)
        self.assertEqual(error.results["ranks"], [4, 8])

    def test_a_time_that_moved_from_the_baseline_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            before = pathlib.Path(folder, "before.jsonl")
            self.assertEqual(len(ringsim.sweep(STAR, output=before)), 1)
            ringsim.sweep(STAR, baseline=before)
            slower = {"topology.link.latency": "1.1 us"}  # 6 * 0.2 us of 21.8: 5.5 %
            error = self.refused(ringsim.sweep, STAR, set=slower, baseline=before)
            self.assertEqual((error.exit_code, len(error.results)), (1, 1))


class Explained(Case):
    def test_explain_is_text_and_data(self):
        found = ringsim.explain(STAR, whatif="topology.link.bandwidth=30 GB/s")  # twice the bandwidth is always tried
        self.assertAlmostEqual(found.time_us, ring_us(4, 64 * 1024), places=6)
        faster = ring_us(4, 64 * 1024, rate=30e9)  # each of the six steps is rounded up to a picosecond
        self.assertTrue(any(abs(row.time_us - faster) < 6e-6 for row in found.what_if), found.what_if["time_us"])
        self.assertIn("critical path", str(found))
        self.assertEqual(found.text, str(found))
        self.assertIn("<pre>", found._repr_html_())
        self.assertEqual(found.to_dict()["bottleneck"]["link"], found.bottleneck.link)
        with self.assertRaises(AttributeError):
            found.whatif

    def test_of_several_points_none_is_explained(self):
        self.assertEqual(self.refused(ringsim.explain, STAR, set={"topology.ranks": [2, 4]}).exit_code, 2)

    def test_bound_is_a_row_for_each_collective(self):
        found = ringsim.bound(STAR)
        (row,) = [row for row in found.bounds if row.collective == "all_reduce" and not row.sums_in_switches]
        self.assertAlmostEqual(row.bound_us, 2 * 3 / 4 * 64 * 1024 / 10e3, places=6)  # 2(K-1)/K p/b
        self.assertIn("all_reduce", str(found))


SMALL_PLAN = {
    "version": 1, "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
    "training": {"workload": {"transformer": {"layers": 4, "hidden": 512, "heads": 4, "ffn": 1536, "vocabulary": 1000},
                              "sequence": 256, "micro_batch_size": 2, "global_batch_size": 16,
                              "compute": {"gemm": "60%", "attention": "40%", "memory": "80%", "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
                 "parallel": {"tensor": 4, "recompute": "full"}, "steps": 1}}


class Planned(Case):
    def test_plan_finds_the_fastest_of_the_plans_that_are_left_open(self):
        stated = ringsim.run(SMALL_PLAN)[0].time_us
        kept = ringsim.plan(SMALL_PLAN)  # the scenario does not set sequence parallelism, which needs no additional bandwidth
        self.assertEqual((kept[0].tp, len(kept)), (4, 1))
        free = ringsim.plan(SMALL_PLAN, free=True, top=2, within="1000%")
        self.assertEqual(len(free), 2)
        self.assertLess(free[0].time_us, stated)
        self.assertLessEqual(free[0].time_us, free[1].time_us)

    def test_plan_takes_a_model_and_a_machine_by_their_names(self):
        plans = ringsim.plan("llama2_7b", node="dgx-h100", batch=16, sequence=1024, top=1)
        self.assertEqual(plans[0].ranks, 8)
        self.assertEqual(plans[0].tp * plans[0].pp * plans[0].dp, 8)
        with self.assertRaisesRegex(ringsim.Error, "--node"):
            ringsim.plan("llama2_7b")

    def test_no_row_if_no_plan_fits(self):
        self.assertEqual(len(ringsim.plan(SMALL_PLAN, set={"training.gpu_memory": "1 MB"})), 0)


class Compared(Case):
    def test_measured_times_are_next_to_predicted_ones(self):
        results = ringsim.compare(A100, MEASURED)
        self.assertEqual(len(results), 29)
        for row in results:
            self.assertAlmostEqual(row.error, row.time_us / row.measured_us - 1)
        self.assertIn("measured us", str(results))

    def test_the_smallest_rows_give_the_launch(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warnings name these rows
            results = ringsim.compare(A100, MEASURED, launch_from=MEASURED)
        self.assertEqual(len(results), 26)
        without = {row.bytes: row.time_us for row in ringsim.compare(A100, MEASURED)}
        more = [row.time_us - without[row.bytes] for row in results]
        self.assertGreater(more[0], 0.1)
        for each in more:
            self.assertAlmostEqual(each, more[0], places=4)

    def test_rows_of_my_own_are_measurements(self):
        predicted = ring_us(4, 64 * 1024)
        rows = [{"collective": "all_reduce", "ranks": 4, "bytes": 65536, "time_us": predicted / 2}]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (row,) = ringsim.compare(STAR, rows)
        self.assertAlmostEqual(row.error, 1.0, places=4)
        error = self.refused(ringsim.compare, STAR, rows, max_error="10%")
        self.assertEqual((error.exit_code, error.results["bytes"]), (1, [65536]))
        self.assertIn("exceeded: one in ten rows", error.message)

    def test_the_explanation_has_rows_and_the_text_of_the_command(self):
        sizes = ["1 MiB", "256 MiB", "1 GiB"]
        measured = [{"collective": "all_reduce", "ranks": 16, "bytes": row.bytes, "time_us": row.time_us * factor}
                    for row, factor in zip(ringsim.run(A100, set={"collective.bytes": sizes}), (1.02, 1.01, 1.04))]
        found = ringsim.compare_explain(A100, measured)
        for row, factor in zip(found.rows, (1.02, 1.01, 1.04)):
            self.assertAlmostEqual(row.error, 1 / factor - 1, places=5)
        self.assertAlmostEqual(found.median_abs_error, 1 - 1 / 1.02, places=5)
        self.assertIn("Tree       LL128", str(found))


class Traces(Case):
    def test_profiles_of_a_job_are_rows_ranks_and_findings(self):
        files = [PROFILES / f"two-of-128-rank-{rank}.json.gz" for rank in (0, 1)]
        found = ringsim.trace_show(files, group="all")
        self.assertEqual(found.world, 128)
        self.assertEqual([row.rank for row in found.ranks], [0, 1])
        self.assertEqual(found.rows[0].collective, "all_gather")
        self.assertIn("2 of 128 ranks", str(found))

    def test_a_job_is_compared_with_a_machine(self):
        found = ringsim.trace_compare("dgx-a100", PROFILES / "resnet50-2xa100.json.gz", nccl="2.18.3")
        self.assertEqual(found.library.nccl, "2.18.3")
        self.assertTrue(all(row.verdict for row in found.rows))
        self.assertIn("dgx-a100 is a machine", found.notes[0])


class Predicted(Case):
    FABRIC = {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}

    def test_a_size_is_seconds_and_sizes_are_a_list(self):
        one = ringsim.predict("all_reduce", 1 << 30, "dgx-h100")
        self.assertEqual(one, ringsim.run("dgx-h100")[0].time_us / 1e6)  # the scenario of this machine has 1 GiB
        self.assertEqual(ringsim.predict("all_reduce", [1 << 20, 1 << 30], "dgx-h100")[1], one)
        self.assertEqual(ringsim.predict("all_reduce", "1 GiB", "dgx-h100"), one)
        self.assertEqual(ringsim.predict("all_reduce", [1 << 30], "dgx-h100"), [one])
        self.assertEqual(ringsim.predict("all_reduce", 1 << 30, "dgx-h100", nodes=2),
                         ringsim.predict("all_reduce", 1 << 30, "dgx-h100", nodes=2, fabric="star"))
        self.assertEqual(ringsim.predict("all_reduce", 1 << 30, "dgx-h100", gpus=8), one)
        self.assertNotEqual(ringsim.predict("all_reduce", 1 << 30, "dgx-h100", gpus=4), one)
        matrix = str(ROOT / "tests/data/machines/matrix.txt")
        self.assertGreater(ringsim.predict("all_reduce", 1 << 30, matrix, like="dgx-1v"), one)  # part of it over PCIe
        with self.assertRaisesRegex(ringsim.Error, "expected --like"):
            ringsim.predict("all_reduce", 1 << 30, matrix)
        with self.assertRaisesRegex(ringsim.Error, "expected a fabric in a word with gpus, found dict"):
            ringsim.predict("all_reduce", 1 << 30, "dgx-h100", nodes=2, gpus=4, fabric={"kind": "star"})
        for nodes in (1, 2):
            with self.assertWarnsRegex(ringsim.RingsimWarning, "a100.* is assumed to be dgx-a100"):
                ringsim.predict("all_reduce", 1 << 30, "a100", nodes=nodes)
        with self.assertRaisesRegex(ringsim.Error, "expected bytes as an integer"):
            ringsim.predict("all_reduce", 1e9, "dgx-h100")

    def test_eight_nodes_take_longer_than_one(self):
        self.assertGreater(ringsim.predict("all_gather", 1 << 30, "dgx-h100", nodes=8, fabric=self.FABRIC),
                           ringsim.predict("all_gather", 1 << 30, "dgx-h100"))

    def test_a_fabric_may_be_a_word_of_the_command(self):
        cables = {"bandwidth": "48 GB/s", "latency": "150 ns"}  # the same as the NICs of a DGX H100
        leaves = {"kind": "leaf_spine", "nodes_per_leaf": 2, "oversubscription": 2, "link": cables}
        by_word = ringsim.predict("all_reduce", [1 << 20, "1 GiB"], "dgx-h100", nodes=4, fabric="leaf_spine:2")
        self.assertEqual(by_word, ringsim.predict("all_reduce", [1 << 20, 1 << 30], "dgx-h100", nodes=4, fabric=leaves))
        forced = {"library.env": {"NCCL_ALGO": "Tree"}}
        self.assertGreater(ringsim.predict("all_reduce", 1 << 30, "dgx-h100", nodes=4, fabric="leaf_spine:2", set=forced), by_word[1])
        error = self.refused(ringsim.predict, "all_reduce", 1024, "dgx-h100", nodes=4, fabric="leafspin:2")
        self.assertIn("leaf_spine", error.hint)
        self.assertEqual(self.refused(ringsim.predict, "all_reduce", 1024, {}, nodes=4, fabric="star").where, "machine")

    def test_settings_reach_the_library_but_must_not_vary(self):
        def forced(value):
            return ringsim.predict("all_reduce", 1 << 30, "dgx-h100", set={"library.env": {"NCCL_ALGO": value}})
        self.assertGreater(forced("Ring"), forced("NVLS"))
        error = self.refused(ringsim.predict, "all_reduce", 1024, "dgx-h100", set={"library.env.NCCL_ALGO": ["Ring", "Tree"]})
        self.assertEqual(error.found, "2")
        self.assertEqual(self.refused(ringsim.predict, "all_reduce", 1.5, "dgx-h100").where, "bytes")


class Lists(Case):
    def test_machines_columns_and_keys_are_those_of_the_command(self):
        machines = ringsim.machines()
        self.assertEqual(ringsim.call("list", "nodes").count("\n") >= len(machines) >= 40, True)
        (p5,) = [row for row in machines if "p5.48xlarge" in row.also]
        self.assertEqual((p5.name, p5.gpu), ("aws-p5", "H100"))
        self.assertIn("time_us", ringsim.columns()["name"])
        (ranks,) = [row for row in ringsim.keys() if row.name == "collective.bytes"]
        self.assertIn("64 MiB", ranks.expects)
        self.assertIn("hgx-h100", str(machines))

    def test_schema_and_version(self):
        self.assertIn("properties", ringsim.schema())
        self.assertEqual(f"ringsim {ringsim.version().version} (model {ringsim.version().model})\n", ringsim.call("version"))
        self.assertEqual(ringsim.__version__, ringsim.version().version)


if __name__ == "__main__":
    unittest.main()
