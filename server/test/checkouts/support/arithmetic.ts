/** Decimal arithmetic by hand on digits in text, so that it shares no code with the code it checks. */

/** Whether the text is an amount; deliberately not a regular expression. */
export function isAmount(value: string): boolean {
  const [whole = '', fraction, ...more] = value.split('.')
  const isDigits = (part: string) => part !== '' && [...part].every((digit) => '0123456789'.includes(digit))
  if (more.length > 0 || !isDigits(whole) || whole.length > 15) return false
  if (whole.length > 1 && whole.startsWith('0')) return false
  if (fraction !== undefined && (!isDigits(fraction) || fraction.length > 6)) return false
  return [...value].some((digit) => digit > '0' && digit <= '9')
}

function multiply(a: string, b: string): string {
  const sums = new Array<number>(a.length + b.length).fill(0)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const sum = Number(a[i]) * Number(b[j]) + (sums[i + j + 1] ?? 0)
      sums[i + j + 1] = sum % 10
      sums[i + j] = (sums[i + j] ?? 0) + Math.floor(sum / 10)
    }
  return trim(sums.join(''))
}

function divideUp(numerator: string, denominator: string): string {
  let rest = ''
  let quotient = ''
  for (const digit of numerator) {
    rest = trim(rest + digit)
    let times = 0
    for (; isAtLeast(rest, denominator); times++) rest = subtract(rest, denominator)
    quotient += times
  }
  return trim(rest) === '0' ? trim(quotient) : increment(trim(quotient))
}

function isAtLeast(a: string, b: string): boolean {
  return a.length === b.length ? a >= b : a.length > b.length
}

/** a - b, where b is not larger. */
function subtract(a: string, b: string): string {
  const digits = [...a].map(Number)
  const other = [...b.padStart(a.length, '0')].map(Number)
  for (let i = digits.length - 1; i >= 0; i--) {
    const difference = (digits[i] ?? 0) - (other[i] ?? 0)
    digits[i] = (difference + 10) % 10
    if (difference < 0) digits[i - 1] = (digits[i - 1] ?? 0) - 1
  }
  return trim(digits.join(''))
}

function increment(value: string): string {
  const nines = /9*$/.exec(value)?.[0].length ?? 0
  const head = `0${value}`.slice(0, value.length + 1 - nines)
  return trim(head.slice(0, -1) + (Number(head.at(-1)) + 1) + '0'.repeat(nines))
}

/** Without leading zeros. */
export function trim(digits: string): string {
  return digits.replace(/^0+(?=\d)/, '')
}

/** ceil(price × worth ÷ per × 10^decimals), all in text. */
export function unitsOf(price: string, worth: string, per: string, decimals: number): string {
  const digits = (value: string) => value.replace('.', '')
  const scale = (value: string) => value.split('.')[1]?.length ?? 0
  const numerator = multiply(digits(price), digits(worth)) + '0'.repeat(decimals + scale(per))
  return divideUp(trim(numerator), trim(digits(per) + '0'.repeat(scale(price) + scale(worth))))
}
