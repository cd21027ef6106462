import { createHash } from 'node:crypto'

/**
 * What a page of ours may load: its own script, and the styles in it by their exact text. Nothing from anybody else, no
 * inline script, no frame around it.
 */
export function contentPolicy(styles: readonly string[], pictures: string): string {
  const hashes = styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`)
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${hashes.join(' ')}`,
    `img-src ${pictures}`,
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}
