import { after } from 'node:test'

const steps: (() => unknown)[] = []

// At module level, because a hook registered inside a test belongs to that test, not to the file.
after(async () => {
  const failures: unknown[] = []
  for (const step of steps.toReversed()) {
    // One failure must not keep the others from closing: a child that lives on would keep this process alive.
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed')
})

/** Registers a step that runs after the file's tests, in reverse order: the last thing opened is closed first. */
export function atEnd(step: () => unknown): void {
  steps.push(step)
}
