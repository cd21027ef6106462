import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** A tool's answer: JSON as text, which every client shows to its model. */
export function answer(value: object): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(value, null, 2) }] }
}

/** An answer that says what went wrong. If money was at stake, `detail` must say what happened to it. */
export function refusal(code: string, detail: string): CallToolResult {
  return { ...answer({ outcome: 'refused', code, detail }), isError: true }
}

export function elsewhere(urls: readonly string[]): CallToolResult {
  return refusal(
    'not_here',
    `That is neither the id of a checkout (ch_…) nor the URL of one below ${urls.join(' or ')}. Nothing was requested or paid. Only the person who runs this server can add a URL, in FARTHING_URL.`,
  )
}
