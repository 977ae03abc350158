"""Tests of rows: access by column, tables, and conversion to pandas."""
import collections.abc
import copy
import json
import pickle
import re
import subprocess
import sys
import types
import unittest
from unittest import mock

from support import PACKAGE, ROOT, STAR, Case, ring_us, ringsim


class Rows(Case):
    @classmethod
    def setUpClass(cls):
        cls.results = ringsim.run(STAR, set={"topology.ranks": [4, 8]})

    def test_a_list_makes_a_row_for_each_value_with_the_time_of_the_closed_form(self):
        self.assertEqual(self.results["ranks"], [4, 8])
        for row, ranks in zip(self.results, (4, 8)):
            self.assertAlmostEqual(row.time_us, ring_us(ranks, 64 * 1024), places=6)  # times are rounded to picoseconds

    def test_a_column_has_one_value_by_name_and_by_attribute(self):
        row = self.results[0]
        self.assertEqual(row["closed_form.formula"], "2(K-1)(a + p/(K b))")
        self.assertEqual(row.closed_form.formula, row["closed_form.formula"])
        self.assertEqual(row["closed_form"]["formula"], row["closed_form.formula"])
        self.assertEqual(row.point["topology.ranks"], 4)  # a path contains dots but is a single name
        self.assertEqual(row["point.topology.ranks"], 4)
        self.assertEqual(row.closed_form.because, [])

    def test_rows_are_mappings_of_columns_that_the_command_lists(self):
        listed = {column.name for column in ringsim.columns()}
        self.assertIn("busbw_GBps", listed)
        self.assertIsInstance(self.results[0], collections.abc.Mapping)
        for name in self.results.columns:
            family = name.split(".")[0] + ".*"
            self.assertTrue(name in listed or family in listed, name)
            self.assertIn(name, self.results[0])

    def test_a_name_that_is_no_column_is_an_error_with_the_nearest(self):
        with self.assertRaises(KeyError) as caught:
            self.results[0]["busbw_GBs"]
        self.assertIn("did you mean busbw_GBps?", str(caught.exception))
        with self.assertRaises(KeyError) as caught:
            self.results["foo"]
        self.assertIn("columns lists all", str(caught.exception))
        with self.assertRaises(AttributeError):
            self.results[0].busbw_GBs
        with self.assertRaises(KeyError):
            self.results["busbw_GBs"]

    def test_a_group_that_is_null_has_null_columns(self):
        row = ringsim.Row({"closed_form": None, "time_us": 1.0})
        self.assertIsNone(row["closed_form.formula"])
        rows = ringsim.Results([row, {"closed_form": {"formula": "a"}, "time_us": 2.0}])
        self.assertEqual(rows.columns, ["time_us", "closed_form.formula"])
        self.assertEqual(rows.to_dict(), {"time_us": [1.0, 2.0], "closed_form.formula": [None, "a"]})

    def test_values_that_varied_stay_whole_if_they_are_objects(self):
        results = ringsim.run(STAR, set={"collective.algorithm": ["ring", {"name": "swing"}]})
        self.assertEqual(results["point.collective.algorithm"][0], "ring")
        self.assertEqual(results[1].to_dict()["point"], {"collective.algorithm": {"name": "swing"}})
        self.assertEqual(dict(results.to_dict())["point.collective.algorithm"][1], {"name": "swing"})

    def test_slices_are_results_and_rows_copy_and_pickle(self):
        self.assertEqual([row.ranks for row in self.results[1:]], [8])
        self.assertIsInstance(self.results[1:], ringsim.Results)
        self.assertEqual(len(self.results), 2)
        row = self.results[0]
        self.assertEqual(dict(copy.deepcopy(row)), dict(row))
        self.assertEqual(dict(pickle.loads(pickle.dumps(row))), dict(row))

    def test_jsonl_is_what_the_command_wrote(self):
        self.assertEqual([json.loads(line) for line in self.results.to_jsonl().splitlines()],
                         [row.to_dict() for row in self.results])
        self.assertEqual(ringsim.run(STAR).to_jsonl().rstrip(), ringsim.call(
            "run", "-", "--format", "jsonl", stdin=json.dumps({"name": "scenario", **STAR})).rstrip())


class Pandas(Case):
    def test_pandas_is_imported_by_to_pandas_alone_and_gets_columns_of_equal_length(self):
        code = "import sys, ringsim; sys.exit('pandas' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], cwd=PACKAGE).returncode, 0)
        results = ringsim.run(STAR, set={"collective.algorithm": ["ring", {"name": "swing"}]})
        fake = types.ModuleType("pandas")
        fake.DataFrame = lambda columns: columns
        with mock.patch.dict(sys.modules, pandas=fake):
            frame = results.to_pandas()
        self.assertEqual({len(column) for column in frame.values()}, {2})
        self.assertEqual(frame["parameters.ports"], [None, "one"])  # the ring does not have this parameter
        self.assertEqual(list(frame), results.columns)


class Shown(Case):
    def test_print_gives_a_table_like_the_command_with_what_all_rows_share_above(self):
        # 2 * 3 * (2 us + 16 KiB / 10 GB/s) = 21.8304 us; 64 KiB / 21.8304 us = 3.002 GB/s; * 2 * 3 / 4 = 4.503; busy for 9.83 of 21.83 us
        self.assertEqual(str(ringsim.run(STAR)), "\n".join([
            "all_reduce  ring  fair  4 ranks  64 KiB  closed form x 1.0000",
            "time us  algbw GB/s  busbw GB/s  bottleneck         busy",
            " 21.830       3.002       4.503  gpu0 -> switch0  45.0 %"]))
        self.assertEqual(str(ringsim.run(STAR)), ringsim.call("run", "-", stdin=json.dumps(STAR)).rstrip())

    def test_times_have_the_unit_of_the_shortest_as_those_of_the_command_do(self):
        for sizes, unit in ((["64 KiB", "64 MiB"], "us"), (["64 MiB", "1 GiB"], "ms"), (["256 GiB", "512 GiB"], "s")):
            scenario = json.dumps(STAR)
            times = [row.time_us for row in ringsim.run(STAR, set={"collective.bytes": sizes})]
            text = str(ringsim.run(STAR, set={"collective.bytes": sizes}))
            self.assertIn(f"time {unit} ", text)
            printed = ringsim.call("run", "-", "--set", f"collective.bytes={json.dumps(sizes)}", stdin=scenario)
            self.assertEqual([line.split() for line in text.splitlines()], [line.split() for line in printed.splitlines()])
            self.assertGreater(min(times), 0)

    def test_what_varies_is_a_column(self):
        lines = str(ringsim.run(STAR, set={"collective.algorithm": ["ring", {"name": "swing"}]})).splitlines()
        self.assertEqual(lines[0], "all_reduce  fair  4 ranks  closed form x 1.0000")
        self.assertEqual(lines[1].split()[:2], ["algorithm", "bytes"])
        self.assertTrue(lines[3].startswith("swing ports=one variant=bandwidth  64 KiB"), lines[3])

    def test_nccl_has_its_own_names(self):
        text = str(ringsim.run("dgx-h100"))
        self.assertIn("NVLS", text)
        self.assertIn("protocol Simple", text)
        self.assertNotIn("in_switch", text)

    PLANS = ROOT / "scenarios/examples/training/plans.json"

    def test_plans_have_the_cells_of_the_command(self):
        plans = ringsim.plan(self.PLANS, set={"training.parallel.recompute": "none"}, top=3)
        head, names, *lines = str(plans).splitlines()
        self.assertEqual(head, "llama3_70b  ring  fair  64 ranks  batch 32  tp 8  pp 2  shard optimizer  recompute none  mbs 1  dp 4")
        self.assertEqual(re.split("  +", names), ["vp", "memory GB", "step ms", "tokens/s/GPU", "MFU", "largest losses"])
        printed = ringsim.call("plan", str(self.PLANS), "--set", "training.parallel.recompute=none", "--top", "3").splitlines()[2:5]
        self.assertEqual(len(lines), 3)
        for line, other in zip(lines, printed):
            vp, *figures = line.replace(" %", "").split()
            _, tp, pp, *others = other.replace(" %", "").split()
            self.assertEqual(["8", "2", vp, "4", *figures], [tp, pp, *others])
        self.assertTrue(lines[0].endswith("48.5 %  tensor 24.8 %, bubble 3.1 %, pipeline 0.7 %"), lines[0])
        self.assertIn("<th>tokens/s/GPU</th>", plans._repr_html_())

    def test_plans_of_a_sweep_show_what_varies_and_errors(self):
        settings = {"where": None, "training.parallel.tensor": 8, "training.parallel.recompute": "full"}
        head, names, *lines = str(ringsim.run(self.PLANS, set={**settings, "training.parallel.pipeline": 2,
                                                          "training.parallel.sequence_parallel": [True, False]})).splitlines()
        self.assertEqual(head, "llama3_70b  ring  fair  64 ranks  batch 32  tp 8  pp 2  vp 1  dp 4")
        self.assertEqual([line.split()[0] for line in [names, *lines]], ["sp", "True", "False"])
        with self.assertWarns(ringsim.RingsimWarning):
            swept = ringsim.sweep(self.PLANS, set={**settings, "training.parallel.pipeline": [2, 3]})
        names, ran, failed = str(swept).splitlines()[1:]
        self.assertEqual([names.split()[0], names.split()[-1], ran.split()[0], failed.split()[0]], ["pp", "error.message", "2", "3"])
        self.assertIn("found 8 x 3 = 24", failed)

    def test_steps_without_buckets_do_not_count_them(self):
        self.assertNotIn("buckets", str(ringsim.run(ROOT / "scenarios/examples/training/data-parallel.json")))
        self.assertRegex(str(ringsim.run(ROOT / "scenarios/examples/training/buckets.json")), r"bytes  buckets  time ms")

    def test_html_has_the_cells_and_escapes_them(self):
        shown = ringsim.run(STAR)._repr_html_()
        self.assertIn("<th>time us</th>", shown)
        self.assertIn("gpu0 -&gt; switch0", shown)
        self.assertNotIn("gpu0 -> switch0", shown)

    def test_sizes_are_exact(self):
        from ringsim._results import size_text
        self.assertEqual([size_text(n) for n in (0, 4, 1024, 1500, 3 << 20, 102_400_000, 1 << 40, 734_614_272)],
                         ["0 B", "4 B", "1 KiB", "1500 B", "3 MiB", "102.4 MB", "1024 GiB", "734614272 B"])

    def test_rows_that_are_not_of_a_run_are_a_table_too(self):
        self.assertEqual(str(ringsim.Results([{"name": "a", "unit": "us", "also": []}])), "name  unit\na     us")
        self.assertEqual(str(ringsim.Results([])), "no rows")

    def test_plot_is_an_svg_of_the_rows(self):
        results = ringsim.run(STAR, set={"collective.bytes": ["1 KiB", "1 MiB"], "collective.algorithm": ["ring", "halving_doubling"]})
        picture = results.plot(y="time_us", title="two & two")
        self.assertTrue(picture._repr_svg_().startswith("<svg"))
        self.assertIn("two &amp; two", picture)
        self.assertIn("halving_doubling", picture)
        self.assertEqual(repr(picture), f"<ringsim.Picture: an SVG of {len(picture)} characters>")
        error = self.refused(results.plot, y="no_such_column")
        self.assertEqual(error.exit_code, 2)


if __name__ == "__main__":
    unittest.main()
