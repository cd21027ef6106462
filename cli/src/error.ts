import { FarthingError } from '@farthing/sdk'
import { type Command, UsageError } from './command.ts'
import { bad, paint, wrap } from './terminal.ts'

/** Prints what went wrong and what to do next. Returns the exit code: 2 for a wrong command line, otherwise 1. */
export function showError(error: unknown, command: Command, isText: boolean): number {
  const isUsage = error instanceof UsageError || isOptionError(error)
  if (!isText) {
    const isRefusal = error instanceof FarthingError
    const { code, detail, requestId, status } = isRefusal ? error : asFailure(error, isUsage)
    const readable = isRefusal ? withFieldNames(error, command) : detail
    process.stderr.write(`${JSON.stringify({ error: { code, detail: readable, status, requestId } })}\n`)
    return isUsage ? 2 : 1
  }
  const { stderr } = process
  if (error instanceof FarthingError) {
    stderr.write(`${bad(wrap(withFieldNames(error, command)))}\n`)
    const more = [
      [error.code, error.requestId].filter((each) => each !== null).join('  '),
      error.problem?.type,
    ]
    for (const line of more) if (line !== undefined) stderr.write(`${paint('dim', `  ${wrap(line)}`)}\n`)
    return 1
  }
  stderr.write(`${bad(wrap(error instanceof Error ? error.message : String(error)))}\n`)
  if (isUsage) stderr.write(paint('dim', `  See farthing ${command.name} --help.\n`))
  return isUsage ? 2 : 1
}

/**
 * The error's detail, with each JSON pointer (`/priceAmount`) or parameter replaced by what the user typed: the option,
 * or the field's name.
 */
function withFieldNames({ detail, problem }: FarthingError, { fields = {} }: Command): string {
  return (problem?.errors ?? []).reduce((text, { pointer }) => {
    const name = pointer.replace(/^\//, '').replaceAll('/', '.')
    return pointer === '' ? text : text.replaceAll(pointer, fields[name] ?? name)
  }, detail)
}

function asFailure(error: unknown, isUsage: boolean) {
  const detail = error instanceof Error ? error.message : String(error)
  return { code: isUsage ? 'usage' : 'failed', detail, status: null, requestId: null }
}

/** Whether node:util rejected the options, for example because it does not know one of them. */
function isOptionError(error: unknown): boolean {
  return error instanceof TypeError && String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')
}
