import { after } from 'node:test'

const steps: (() => unknown)[] = []

// Here, not in the function: a hook that is registered inside a test belongs to that test, not to the file.
after(async () => {
  for (const step of steps.toReversed()) await step()
})

/** Runs when the file's tests are done, the last registered first: what was opened last is closed first. */
export function atEnd(step: () => unknown): void {
  steps.push(step)
}
