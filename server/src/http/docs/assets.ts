import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')

/** The style is inlined. The script's name contains a hash of its content, so browsers may cache it forever. */
export const style = read('style.css')

const text = read('copy.js')
const hash = createHash('sha384').update(text).digest()

export const script = {
  text,
  path: `/docs/assets/copy.${hash.toString('hex', 0, 8)}.js`,
  integrity: `sha384-${hash.toString('base64')}`,
} as const

/** Only our own pictures, our own script with the right hash, and one style, by its hash. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'integrity-policy': 'blocked-destinations=(script)',
  'referrer-policy': 'no-referrer',
} as const
