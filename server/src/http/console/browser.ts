import type { Language } from './texts/choose.ts'

/** What a user agent's text says, as its owner would say it: "Firefox on Windows". Anybody can send anything there. */
export function describeBrowser(userAgent: string, { texts }: Language): string {
  const find = (names: readonly (readonly [RegExp, string])[]) =>
    names.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find([
    [/\bEdg(e|A|iOS)?\//, 'Edge'],
    [/\bOPR\//, 'Opera'],
    [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
    [/\b(Headless)?Chrom(e|ium)\/|\bCriOS\//, 'Chrome'],
    [/\bSafari\//, 'Safari'],
  ])
  const system = find([
    [/\biPhone\b/, 'iPhone'],
    [/\biPad\b/, 'iPad'],
    [/\bAndroid\b/, 'Android'],
    [/\bWindows\b/, 'Windows'],
    [/\bMac OS X\b/, 'Mac'],
    [/\bLinux\b|\bCrOS\b/, 'Linux'],
  ])
  const named = browser ?? texts.someBrowser
  return system ? texts.browserOn.replace('{browser}', named).replace('{system}', system) : named
}
