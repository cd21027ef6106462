import { isUtf8 } from 'node:buffer'
import { Problem } from '../problems.ts'

/** Our deepest body has 3 levels. */
const depthMax = 8

/**
 * Parses a JSON body, or refuses it. Stricter than JSON.parse in two ways: a repeated key is an error (parsers differ
 * on which one counts, so a proxy could see another amount than we do), and nesting is bounded.
 */
export function parseBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw malformed('it is not UTF-8')
  const text = bytes.toString()
  try {
    checkNesting(text)
    return JSON.parse(text)
  } catch (error) {
    throw error instanceof SyntaxError ? malformed('it has a syntax error') : error
  }
}

/** One pass over the text. What is not JSON may slip through here: JSON.parse has the last word. */
function checkNesting(text: string): void {
  const keys: (Set<string> | null)[] = []
  // A string that does not end matches too: were it no match, each quote in it would be tried again to the end.
  const token = /"(?:[^"\\]|\\.?)*"?|[{}[\]]/gs
  const colon = /\s*:/y
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match
    if (found === '{' || found === '[') {
      keys.push(found === '{' ? new Set() : null)
      if (keys.length > depthMax) throw malformed(`it is nested more than ${depthMax} levels deep`)
    } else if (found === '}' || found === ']') {
      keys.pop()
    } else {
      const seen = keys.at(-1)
      colon.lastIndex = token.lastIndex
      if (!seen || !colon.test(text)) continue
      const key = JSON.parse(found) as string
      if (seen.has(key)) throw malformed(`the key ${found} appears twice`)
      seen.add(key)
    }
  }
}

function malformed(why: string): Problem {
  return new Problem('malformed_json', `The request body was rejected: ${why}.`)
}
