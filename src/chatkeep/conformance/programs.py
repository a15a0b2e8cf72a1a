"""Programs that tests run in a process of their own: their end, a fork, and interrupts would harm the test's."""

from __future__ import annotations

EXIT_WITHOUT_CLOSE = {
    "sync": """
        import sys
        from chatkeep import Message, open_repository
        repository = open_repository(sys.argv[1])
        handle = repository.for_owner("someone")
        repository.append(sys.argv[2], [Message.user("left open")])
        handle.append(sys.argv[2], [Message.user("left open")])
        print("done")
    """,
    "async": """
        import asyncio, sys
        from chatkeep import Message, open_async_repository
        async def main():
            repository = await open_async_repository(sys.argv[1])
            await repository.append(sys.argv[2], [Message.user("left open")])
            handle = repository.for_owner("someone")
            await handle.append(sys.argv[2], [Message.user("left open")])
        asyncio.run(main())
        print("done")
    """,
}
"""Ends without a close, with a handle of an owner open too. Arguments: URL, conversation id."""

FORK = {
    "sync": """
        import os, sys
        from chatkeep import Message, open_repository
        url, conversation_id, first = sys.argv[1:]
        repository = open_repository(url)
        repository.append(conversation_id, [Message.user("before")])
        parent_closed, child_done = os.pipe(), os.pipe()
        child = os.fork()
        who = "parent" if child else "child"
        for n in range(20):
            repository.append(conversation_id, [Message.user(f"{who} {n:02}")])
            assert repository.find_by_conversation_id(conversation_id, limit=1)
        if child:
            if first == "parent":
                repository.close()
                os.write(parent_closed[1], b"x")
            os.read(child_done[0], 1)
            assert os.waitpid(child, 0)[1] == 0
            if first == "child":
                repository.append(conversation_id, [Message.user("after")])
                repository.close()
        else:
            if first == "parent":
                os.read(parent_closed[0], 1)
                repository.append(conversation_id, [Message.user("after")])
            repository.close()
            os.write(child_done[1], b"x")
            sys.stdout.flush()
            os._exit(0)
    """,
    "async": """
        import asyncio, os, sys
        from chatkeep import Message, open_async_repository
        url, conversation_id, first = sys.argv[1:]
        async def before():
            repository = await open_async_repository(url)
            await repository.append(conversation_id, [Message.user("before")])
            return repository
        async def write(who):
            for n in range(20):
                await repository.append(conversation_id, [Message.user(f"{who} {n:02}")])
                assert await repository.find_by_conversation_id(conversation_id, limit=1)
            if who == "parent":
                if first == "parent":
                    await repository.close()
                    os.write(parent_closed[1], b"x")
                os.read(child_done[0], 1)
                assert os.waitpid(child, 0)[1] == 0
                if first == "child":
                    await repository.append(conversation_id, [Message.user("after")])
                    await repository.close()
            else:
                if first == "parent":
                    os.read(parent_closed[0], 1)
                    await repository.append(conversation_id, [Message.user("after")])
                await repository.close()
                os.write(child_done[1], b"x")
        repository = asyncio.run(before())
        parent_closed, child_done = os.pipe(), os.pipe()
        child = os.fork()
        asyncio.run(write("parent" if child else "child"))
        if not child:
            sys.stdout.flush()
            os._exit(0)
    """,
}
"""Parent and child write after a fork, and one of them closes first. Arguments: URL, conversation id, who."""

INTERRUPTED = """
    import json, logging, random, signal, sys, time
    from chatkeep import Message, StorageError, open_repository
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())  # its pool logs what interrupted it
    url, conversation_id, options = sys.argv[1:]
    class Interrupt(BaseException):
        pass
    armed = False
    def interrupt(*_):
        if armed:
            raise Interrupt
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = lambda _: None  # an interrupt inside of a finalizer is printed and dropped by Python
    chance = random.Random(8)
    interrupts = 0
    with open_repository(url, **json.loads(options)) as repository, open_repository(url) as other:
        began = time.perf_counter()
        for call in range(10):
            repository.append(conversation_id, [Message.user(f"{call} {place}") for place in range(3)])
        usual = (time.perf_counter() - began) / 10
        for call in range(200):
            batch = [Message.user(f"{call} {place}") for place in range(3)]
            write = repository.save_all if call % 3 == 0 else repository.append
            before = other.find_by_conversation_id(conversation_id)
            try:
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.05, 1.2) * usual)
                    write(conversation_id, batch)
                    armed = False
                finally:
                    armed = False
                    signal.setitimer(signal.ITIMER_REAL, 0)
                done = True
            except Interrupt:
                done = False
                interrupts += 1
            found = other.find_by_conversation_id(conversation_id)
            after = batch if call % 3 == 0 else before + batch
            assert found == after or (not done and found == before), (call, done, len(before), len(found))
            repository.append(conversation_id, [Message.user(f"acknowledged {call}")])
            assert other.find_by_conversation_id(conversation_id, limit=1)[0].text == f"acknowledged {call}"
    assert interrupts > 3, interrupts
"""
"""Writes that a signal handler's exception interrupts anywhere. Arguments: URL, conversation id, options as JSON."""
