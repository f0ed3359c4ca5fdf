"A package without dependencies: its Project.toml says what it is called, `julia --project=Primes` finds it."
module Primes

export isprime, count_primes

"Whether a number has no divisor but itself and 1."
isprime(number) = number > 1 && all(number % divisor != 0 for divisor in 2:isqrt(number))

"How many numbers of a range are prime."
count_primes(range) = count(isprime, range)

end
