"""The contract under load: many workers write and read the same conversations, and every read is judged.

`python -m benchmarks.soak` is the command. A worker's operations are written once, as coroutines: a thread runs them
over a synchronous repository that never waits, a task over an asynchronous one.
"""
