-- Takes an author's entries out of a home, while this very state stands: a follow that came after it wants them.
-- KEYS: the home, the reader's states. ARGV: the state's field, its value, the author (8 bytes).
local home, author = KEYS[1], ARGV[3]
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return
end
for _, member in ipairs(redis.call('ZRANGE', home, 0, -1)) do
  if #member == 16 and string.sub(member, 9) == author then
    redis.call('ZREM', home, member)
  end
end
