#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "braid/rendezvous.h"

namespace braid {

/// One rank's end of a rendezvous between processes that map one file, which is empty at first.
class MeetingFile final : public Rendezvous {
 public:
  MeetingFile(const std::string& path, int rank, int world) : world_(world), ranks_{rank} {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Hall)) != 0) throw_internal(path, "cannot be made");
    void* mapped = ::mmap(nullptr, sizeof(Hall), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (mapped == MAP_FAILED) throw_internal(path, "cannot be mapped");
    hall_ = static_cast<Hall*>(mapped);
  }
  ~MeetingFile() override { ::munmap(hall_, sizeof(Hall)); }
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

  [[nodiscard]] int world() const override { return world_; }
  [[nodiscard]] const std::vector<int>& ranks() const override { return ranks_; }
  [[nodiscard]] std::vector<std::string> all_gather(std::vector<std::string> mine) override {
    Seat& own = seat(ranks_[0]);
    if (mine[0].size() > own.bytes.size()) throw_internal("rendezvous", "too much");
    wait(&Seat::left, round_);
    ++round_;
    std::memcpy(own.bytes.data(), mine[0].data(), mine[0].size());
    own.size = mine[0].size();
    own.came = round_;
    wait(&Seat::came, round_);
    std::vector<std::string> all;
    for (int rank = 0; rank < world_; ++rank) {
      all.emplace_back(seat(rank).bytes.data(), seat(rank).size);
    }
    own.left = round_;
    return all;
  }

 private:
  struct Seat {
    std::atomic<std::uint64_t> came, left;
    std::size_t size;
    std::array<char, 65536> bytes;
  };
  struct Hall {
    std::array<Seat, 8> seats;
  };
  [[nodiscard]] Seat& seat(int rank) const { return hall_->seats[static_cast<std::size_t>(rank)]; }
  void wait(std::atomic<std::uint64_t> Seat::*counter, std::uint64_t round) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int rank = 0; rank < world_; ++rank) {
      while (seat(rank).*counter < round) {
        if (std::chrono::steady_clock::now() > deadline) {
          throw Error(ErrorCode::kTimeout, "rendezvous", "rank " + std::to_string(rank));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
  }

  int world_;
  std::vector<int> ranks_;
  std::uint64_t round_ = 0;
  Hall* hall_;
};

}  // namespace braid
