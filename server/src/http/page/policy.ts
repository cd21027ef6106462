import { createHash } from 'node:crypto'

/**
 * What a page of ours may load: its own script, and the styles in it by their exact text. Nothing from other hosts, no
 * inline script, no frame around it.
 */
export function contentPolicy(
  styles: readonly string[],
  pictures: string,
  { hasFrames = false }: { readonly hasFrames?: boolean } = {},
): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${hashesOf(styles)}`,
    `img-src ${pictures}`,
    ...(hasFrames ? ["frame-src 'self'"] : []),
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** For a picture of a page in a frame of our own: its styles and data, and nothing that acts. */
export function stillPolicy(styles: readonly string[]): string {
  return [
    "default-src 'none'",
    `style-src ${hashesOf(styles)}`,
    'img-src data:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
    'sandbox',
  ].join('; ')
}

function hashesOf(styles: readonly string[]): string {
  return styles.map((style) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`).join(' ')
}
