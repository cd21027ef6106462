import type { ProviderError } from './policies.ts'
import type { Said } from './provider.ts'

/** What providers answer when they cannot tell: to a single call, or to a request as a whole. None of it is about the call. */
export const callErrors: Readonly<Record<string, ProviderError | 'null'>> = {
  'over rate limit': { code: -32016, message: 'over rate limit' },
  'request limit': { code: -32007, message: '15/second request limit reached - reduce calls per second' },
  'compute units': { code: 429, message: 'Your app has exceeded its compute units per second capacity.' },
  'too many requests': { code: -32005, message: 'Too Many Requests' },
  'header not found': { code: -32000, message: 'header not found' },
  'missing trie node': { code: -32000, message: 'missing trie node: state is not available' },
  'internal error': { code: -32603, message: 'internal error', data: `0x${'2a'.repeat(32)}` },
  'timed out': { code: -32603, message: 'upstream timed out' },
  'no such method': { code: -32601, message: 'the method is not available on your plan' },
  'invalid params': { code: -32602, message: 'invalid argument 1: hex string without 0x prefix' },
  'not found': { code: -32001, message: 'Resource not found.' },
  'unknown block': { code: -39001, message: 'unknown block' },
  'not synced': { code: -32004, message: 'Block not available for slot 12' },
  'reverted node': { code: -32000, message: 'the upstream node was reverted to an earlier snapshot' },
  'backup node': { code: -32603, message: 'Reverted to the backup node, try again' },
  'no words': { code: -32000, message: '' },
  null: 'null',
}

/** One provider alone says that code ran and failed, although none ran. Nothing in it shows that. */
export const falseRevert: ProviderError = { code: -32000, message: 'execution reverted' }

const json = (error: unknown, id: unknown = null) => JSON.stringify({ jsonrpc: '2.0', id, error })
const page = '<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>'

export const requestErrors: Readonly<Record<string, Said>> = {
  'a page with status 200': { status: 200, body: page },
  'a page with status 502': { status: 502, body: page },
  'status 500 without a body': { status: 500, body: '' },
  'status 503': { status: 503, body: json({ code: -32000, message: 'no backends available' }) },
  'status 504': { status: 504, body: 'upstream request timeout' },
  'status 429': { status: 429, body: page },
  'status 429 for a second': { status: 429, body: '', headers: { 'retry-after': '1' } },
  'status 401': { status: 401, body: json({ code: -32002, message: 'Must be authenticated!' }) },
  'status 403': { status: 403, body: json({ code: -32600, message: 'App is inactive' }) },
  'status 403 with a page': { status: 403, body: page },
  'status 400': { status: 400, body: json({ code: -32600, message: 'Invalid Request' }) },
  'a truncated answer': { status: 200, body: '[{"jsonrpc":"2.0","id":1,"result":"0x' },
  'an empty answer': { status: 200, body: '' },
  'null for an answer': { status: 200, body: 'null' },
  'an empty list': { status: 200, body: '[]' },
  'an empty object': { status: 200, body: '{}' },
  'an error without an id': { status: 200, body: json({ code: -32603, message: 'internal error' }) },
  'a text for an error': { status: 200, body: json('upstream unavailable') },
  'a reply with neither': { status: 200, body: JSON.stringify([{ jsonrpc: '2.0', id: 1 }]) },
}
