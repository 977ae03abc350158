"""Tests of schedules written as Python functions, which are proved, run or rejected."""
import json
import unittest

from support import STAR, Case, ring_us, ringsim

from ringsim.schedule import add, after, copy, receive, receive_add, region, send


def ring(rank, n):
    right, left = (rank + 1) % n, (rank - 1) % n
    for i in range(2 * (n - 1)):
        get = receive_add if i < n - 1 else receive
        yield [send((rank - i) % n, right), get((rank - i - 1) % n, left)]


def with_schedule(schedule, **collective):
    return {**STAR, "collective": {"op": "all_reduce", "bytes": "64 KiB", "algorithm": schedule, **collective}}


class Proved(Case):
    def test_a_ring_in_python_takes_the_time_of_the_ring_in_the_catalog(self):
        for ranks in (2, 3, 4, 7):
            schedule = ringsim.Schedule(ring, ranks)
            row, catalog = ringsim.run(with_schedule(schedule), set={"topology.ranks": ranks, "collective.algorithm": [schedule, "ring"]})
            self.assertEqual(row.time_us, catalog.time_us)
            self.assertEqual(row.fingerprint, catalog.fingerprint)  # the fingerprint covers every message and its time
        self.assertAlmostEqual(ringsim.run(with_schedule(ringsim.Schedule(ring, 4)))[0].time_us, ring_us(4, 64 * 1024), places=6)

    def test_its_proof_is_the_command_s(self):
        schedule = ringsim.Schedule(ring, 4, name="my ring")
        self.assertIn("my ring all_reduce, 4 ranks: proved; 48 operations", schedule.proof)  # 4 ranks, 6 steps, 2 operations
        self.assertIn("my ring all_reduce", repr(schedule))

    def test_a_rank_that_forgets_to_add_is_refused_when_it_is_made(self):
        def forgets(rank, n):
            for step in ring(rank, n):
                yield [step[0], step[1].replace("receive_add", "receive") if rank == 2 else step[1]]
        error = self.refused(ringsim.Schedule, forgets, 4)
        self.assertEqual(error.exit_code, 3)
        self.assertEqual(error.where, "schedule forgets")
        self.assertIn("rank", error.message)

    def test_an_operation_that_is_none_is_refused_with_its_step(self):
        error = self.refused(ringsim.Schedule, lambda rank, n: ["sned data[0] to 1"], 2)
        self.assertEqual(error.where, "schedule <lambda>: /steps/0/0/0/0")
        self.assertEqual(error.expected, "an operation (send, receive, receive_add, copy, add, compute) or a wait (after)")

    def test_a_schedule_of_other_ranks_than_the_machine_is_refused(self):
        error = self.refused(ringsim.run, with_schedule(ringsim.Schedule(ring, 3)))
        self.assertEqual((error.expected, error.found), ("as many GPUs as ring has ranks, 3", "4"))

    def test_a_schedule_written_twice_is_the_same_scenario(self):
        first, second = (ringsim.run(with_schedule(ringsim.Schedule(ring, 4)))[0] for _ in range(2))
        self.assertEqual(first["scenario.hash"], second["scenario.hash"])  # the hash does not depend on the file name


class Forms(Case):
    def test_a_broadcast_from_a_root(self):
        def all_from_root(rank, n):
            if rank == 1:
                yield [send(0, to) for to in range(n) if to != 1]
            else:
                yield receive(0, 1)
        schedule = ringsim.Schedule(all_from_root, 4, collective="broadcast", root=1, chunks=1)
        row = ringsim.run(with_schedule(schedule, op="broadcast", root=1))[0]
        self.assertAlmostEqual(row.time_us, 2 + 3 * 64 * 1024 / 10e3, places=6)  # one port sends the data three times

    @staticmethod
    def halves(rank, n, lane, waits=()):
        """Two ranks exchange half of the buffer per lane, and each lane has its own channel."""
        yield [*waits, copy(lane, f"scratch[{lane}]")]
        yield [send(f"scratch[{lane}]", 1 - rank, channel=lane), receive_add(lane, 1 - rank, channel=lane)]

    BUFFERS = {"data": {"chunks": 2}, "scratch": {"chunks": 2}}

    def test_lanes_work_at_the_same_time(self):
        schedule = ringsim.Schedule(self.halves, 2, lanes=2, buffers=self.BUFFERS)
        self.assertEqual(json.loads(schedule.to_json())["lanes"], 2)
        row = ringsim.run(with_schedule(schedule), set={"topology.ranks": 2})[0]
        self.assertAlmostEqual(row.time_us, 2 + 64 * 1024 / 10e3, places=6)  # both halves share the port

    def test_a_lane_waits_for_another(self):
        def in_turn(rank, n, lane):
            return self.halves(rank, n, lane, waits=[after(2, 0)] if lane == 1 else [])
        schedule = ringsim.Schedule(in_turn, 2, lanes=2, buffers=self.BUFFERS)
        row = ringsim.run(with_schedule(schedule), set={"topology.ranks": 2})[0]
        self.assertAlmostEqual(row.time_us, 2 * (2 + 32 * 1024 / 10e3), places=6)

    def test_helpers_are_servers(self):
        def server(actor, n):
            if actor == n:
                yield receive("scratch[0]", 0)
                yield from (receive_add("scratch[0]", rank) for rank in range(1, n))
                yield [send("scratch[0]", rank) for rank in range(n)]
            else:
                yield send(0, n)
                yield receive(0, n)
        schedule = ringsim.Schedule(server, 3, helpers=1, buffers={"data": {"chunks": 1}, "scratch": {"chunks": 1}})
        row = ringsim.run(with_schedule(schedule), set={"topology.ranks": 3})[0]
        p = 64 * 1024 / 10e3  # three messages in turn (each receive is a separate step), then three that share the port
        self.assertAlmostEqual(row.time_us, 3 * (2 + p) + (2 + 3 * p), places=6)

    def test_operations_are_written_as_the_command_reads_them(self):
        self.assertEqual([region(3), region(range(4, 8)), region(range(4, 5)), region("input[1]")],
                         ["data[3]", "data[4..7]", "data[4]", "input[1]"])
        self.assertEqual(send(0, 1, channel=2), "send data[0] to 1 channel 2")
        self.assertEqual(receive_add(0, 1, into="scratch[0]", channel=1), "receive_add data[0] from 1 to scratch[0] channel 1")
        self.assertEqual([copy(0, 1), add(0, 1)], ["copy data[0] to data[1]", "add data[0] to data[1]"])
        self.assertEqual(after(2, 0), "after 2 steps of lane 0")
        for wrong in (range(0), range(0, 4, 2)):
            with self.assertRaises(ValueError):
                region(wrong)

    def test_its_picture_is_an_svg_with_its_name(self):
        schedule = ringsim.Schedule(ring, 4, name="drawn ring")
        self.assertTrue(schedule._repr_svg_().startswith("<svg"))
        self.assertIn("drawn ring all_reduce, 4 ranks", schedule.picture())


if __name__ == "__main__":
    unittest.main()
